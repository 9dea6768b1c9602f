# Renders the user data of a virtual machine that runs vodbox: cloud-init installs it from the apt repository. Any provider
# that offers Debian 12 or Ubuntu with cloud-init takes it; the module itself needs no provider.

terraform {
  required_version = ">= 1.3"
}

locals {
  # Settings of VODBOX_ names that follow from other variables; those of the caller win.
  behind_proxy = var.domain == null ? {} : {
    VODBOX_BASE_URL        = "https://${var.domain}"
    VODBOX_TRUSTED_PROXIES = "127.0.0.1/32"
  }
  settings = merge(local.behind_proxy, var.settings)

  # In quotes, as systemd reads them.
  environment = join("", [
    for name, value in local.settings : "${name}=\"${replace(replace(value, "\\", "\\\\"), "\"", "\\\"")}\"\n"
  ])

  caddyfile = var.domain == null ? "" : <<-END
    ${var.domain} {
      reverse_proxy 127.0.0.1:${lookup(local.settings, "VODBOX_PORT", "8080")} {
        header_up -Forwarded
        flush_interval -1
        transport http {
          keepalive 60s
        }
      }
    }
  END

  keyring = "/etc/apt/keyrings/vodbox-archive-keyring.asc"

  files = concat(
    [{
      path        = local.keyring
      permissions = "0644"
      content     = var.apt_key
      }, {
      path        = "/etc/vodbox/vodbox.env"
      permissions = "0600"
      content     = local.environment
    }],
    var.domain == null ? [] : [{
      path        = "/etc/caddy/Caddyfile"
      permissions = "0644"
      content     = local.caddyfile
    }],
  )

  user_data = merge(
    {
      package_update = true
      packages       = concat(["vodbox"], var.domain == null ? [] : ["caddy"])
      apt = {
        sources = {
          vodbox = {
            source = "deb [signed-by=${local.keyring}] ${var.apt_url} stable main"
          }
        }
      }
      # Before apt reads the repository, and before the packages, which keep files of settings that exist.
      write_files = local.files
    },
    {
      for name, value in local.data_volume : name => value if var.data_device != null
    },
  )

  data_volume = {
    # The volume may be attached after the machine has started.
    bootcmd  = [["sh", "-c", "for try in $(seq 120); do [ -e \"$1\" ] && exit; sleep 1; done", "wait", var.data_device]]
    fs_setup = [{ device = var.data_device, partition = "none", filesystem = "ext4", label = "vodbox", overwrite = false }]
    mounts   = [[var.data_device, "/var/lib/vodbox", "ext4", "defaults,x-systemd.device-timeout=60", "0", "2"]]
  }
}
