output "user_data" {
  description = "User data for the machine."
  value       = "#cloud-config\n${yamlencode(local.user_data)}"
  # Settings may be secrets.
  sensitive = true
}
