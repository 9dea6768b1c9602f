# One machine at Hetzner Cloud with a volume for the data, and a firewall. Other providers need the same three resources.

terraform {
  required_version = ">= 1.5"
  required_providers {
    hcloud = {
      source  = "hetznercloud/hcloud"
      version = "~> 1.50"
    }
  }
}

variable "apt_url" {
  description = "URL of the apt repository."
  type        = string
}

variable "apt_key_file" {
  description = "Path of its public key, vodbox-archive-keyring.asc."
  type        = string
}

variable "domain" {
  description = "Host name, whose A and AAAA records are those of the outputs."
  type        = string
}

variable "ssh_keys" {
  description = "Names of SSH keys of the project."
  type        = list(string)
}

variable "server_type" {
  type    = string
  default = "cpx31"
}

variable "location" {
  type    = string
  default = "nbg1"
}

variable "volume_gb" {
  type    = number
  default = 200
}

module "vodbox" {
  source      = "../cloud-init"
  apt_url     = var.apt_url
  apt_key     = file(var.apt_key_file)
  domain      = var.domain
  data_device = hcloud_volume.data.linux_device
}

resource "hcloud_volume" "data" {
  name     = "vodbox"
  size     = var.volume_gb
  location = var.location

  lifecycle {
    prevent_destroy = true
  }
}

resource "hcloud_firewall" "vodbox" {
  name = "vodbox"

  dynamic "rule" {
    for_each = ["22", "80", "443"]
    content {
      direction  = "in"
      protocol   = "tcp"
      port       = rule.value
      source_ips = ["0.0.0.0/0", "::/0"]
    }
  }
}

resource "hcloud_server" "vodbox" {
  name         = "vodbox"
  image        = "debian-12"
  server_type  = var.server_type
  location     = var.location
  ssh_keys     = var.ssh_keys
  firewall_ids = [hcloud_firewall.vodbox.id]
  user_data    = module.vodbox.user_data

  lifecycle {
    # The machine is upgraded by apt; another user data would replace it.
    ignore_changes = [user_data]
  }
}

resource "hcloud_volume_attachment" "data" {
  volume_id = hcloud_volume.data.id
  server_id = hcloud_server.vodbox.id
  automount = false
}

output "ipv4" {
  value = hcloud_server.vodbox.ipv4_address
}

output "ipv6" {
  value = hcloud_server.vodbox.ipv6_address
}
