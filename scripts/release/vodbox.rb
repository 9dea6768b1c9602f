class Vodbox < Formula
  desc "Complete video platform in one executable"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license all_of: ["MIT", "GPL-2.0-or-later"]

  on_linux do
@LINUX@
  end

  # The commands of clients: the server runs on Linux only.
  on_macos do
    url "@COMMANDS_URL@"
    sha256 "@COMMANDS_SHA256@"
    depends_on "node"
  end

  def install
    if OS.mac?
      libexec.install Dir["*"]
      chmod 0755, libexec/"vodbox.cjs"
      bin.install_symlink libexec/"vodbox.cjs" => "vodbox"
    else
      bin.install Dir["vodbox-*"].first => "vodbox"
      chmod 0755, bin/"vodbox"
    end
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
