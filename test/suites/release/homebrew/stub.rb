# Evaluates a formula as Homebrew does, with the part of its language that ours uses, for one system and processor:
# ruby stub.rb FORMULA linux|macos intel|arm DOWNLOAD PREFIX. It installs DOWNLOAD to PREFIX, runs the formula's test, and prints
# what the formula states as JSON. Any other word of the language is an error.
require "fileutils"
require "json"
require "open3"
require "pathname"
require "tmpdir"

FILE, SYSTEM, PROCESSOR, DOWNLOAD, PREFIX = ARGV
FACTS = { "dependencies" => [] }

class Pathname
  def install(source)
    mkpath
    sources = source.is_a?(Hash) ? source : Array(source).to_h { |from| [from, File.basename(from)] }
    sources.each { |from, to| FileUtils.mv(from, self/to) }
  end

  def install_symlink(links)
    mkpath
    links.each { |from, to| File.symlink(from, self/to) }
  end
end

module OS
  def self.mac? = SYSTEM == "macos"
end

class Service
  def method_missing(name, *arguments, **named)
    raise "service has no #{name}" unless %i[run environment_variables keep_alive log_path error_log_path].include?(name)
    FACTS["service"] ||= {}
    FACTS["service"][name] = named.empty? ? arguments.flatten.map(&:to_s) : named.transform_values(&:to_s)
  end

  def respond_to_missing?(*) = true
  def opt_bin = Pathname(PREFIX)/"bin"
  def var = Pathname("/var")
end

class Formula
  include FileUtils

  class << self
    %i[desc homepage version url sha256].each do |word|
      define_method(word) do |value|
        raise "#{word} is stated twice" if FACTS.key?(word.to_s)
        FACTS[word.to_s] = value
      end
    end
    def license(value) = FACTS["license"] = value
    def depends_on(name) = FACTS["dependencies"] << name
    def on_linux = (yield if SYSTEM == "linux")
    def on_macos = (yield if SYSTEM == "macos")
    def on_intel = (yield if PROCESSOR == "intel")
    def on_arm = (yield if PROCESSOR == "arm")
    def service(&block) = Service.new.instance_eval(&block)
    def test(&block) = define_method(:run_test, &block)
    def inherited(formula) = (@formula = formula; super)
    attr_reader :formula
  end

  def bin = Pathname(PREFIX)/"bin"
  def libexec = Pathname(PREFIX)/"libexec"
  def version = FACTS["version"]

  def generate_completions_from_executable(*command, shells:)
    FACTS["completions"] = shells.to_h { |shell| [shell, output([*command, shell].map(&:to_s))] }
  end

  def system(*command) = Kernel.system(*command.map(&:to_s), out: :err) || raise("#{command} failed")
  def shell_output(command) = output([command])

  def output(command)
    text, status = Open3.capture2(*command)
    raise "#{command} failed" unless status.success?
    text
  end

  def assert_match(expected, actual)
    raise "#{actual} does not contain #{expected}" unless actual.include?(expected)
  end
end

load FILE
formula = Formula.formula.new
Dir.mktmpdir do |folder|
  FileUtils.cp(DOWNLOAD, folder)
  # Homebrew unpacks an archive that has one folder, and enters it.
  if DOWNLOAD.end_with?(".tgz")
    Kernel.system("tar", "-xzf", DOWNLOAD, "-C", folder) || raise("tar failed")
    folder = "#{folder}/package"
  end
  Dir.chdir(folder) do
    formula.install
    formula.run_test
  end
end
puts JSON.generate(FACTS)
