class Vodbox < Formula
  desc "Complete video platform in one executable"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license all_of: ["MIT", "GPL-2.0-or-later"]

  on_linux do
@LINUX@
  end

  def install
    bin.install Dir["vodbox-*"].first => "vodbox"
    chmod 0755, bin/"vodbox"
    generate_completions_from_executable(bin/"vodbox", "completion", shells: [:bash, :zsh, :fish])
  end

  service do
    run [opt_bin/"vodbox", "serve"]
    environment_variables VODBOX_DATA_DIR: var/"lib/vodbox", VODBOX_CACHE_DIR: var/"cache/vodbox"
    keep_alive true
    log_path var/"log/vodbox.log"
    error_log_path var/"log/vodbox.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/vodbox --version")
  end
end
