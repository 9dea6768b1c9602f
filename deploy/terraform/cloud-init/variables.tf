variable "apt_url" {
  description = "URL of the apt repository that npm run release -- --apt has written."
  type        = string

  validation {
    condition     = can(regex("^https?://[^\\s\\[\\]]+$", var.apt_url))
    error_message = "It has to be an http or https URL."
  }
}

variable "apt_key" {
  description = "Public key of the repository: the text of vodbox-archive-keyring.asc."
  type        = string

  validation {
    condition     = startswith(var.apt_key, "-----BEGIN PGP PUBLIC KEY BLOCK-----")
    error_message = "It has to be an armored public key of OpenPGP."
  }
}

variable "domain" {
  description = "Host name that leads to the machine. Caddy then gets its certificate and is the proxy; null for none."
  type        = string
  default     = null

  validation {
    condition     = var.domain == null || can(regex("^[A-Za-z0-9.-]+$", var.domain))
    error_message = "It has to be a host name."
  }
}

variable "settings" {
  description = "Settings of vodbox by name (docs/operations.md). Providers store user data; keep secrets that matter out of it."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name, value in var.settings : can(regex("^VODBOX_[A-Z0-9_]+$", name)) && !strcontains(value, "\n")])
    error_message = "Names begin with VODBOX_, and values have no line breaks."
  }
}

variable "data_device" {
  description = "Block device of a volume for /var/lib/vodbox, formatted when it is empty; null for the machine's own disk."
  type        = string
  default     = null

  validation {
    condition     = var.data_device == null || can(regex("^/dev/[A-Za-z0-9/_.:-]+$", var.data_device))
    error_message = "It has to be a path below /dev."
  }
}
