package dovecottest

// configuration is for a server that runs as one unprivileged user and reads no
// other files of the system.
const configuration = `base_dir = {dir}/run
state_dir = {dir}/state
log_path = {dir}/dovecot.log
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <{dir}/cert.pem
ssl_key = <{dir}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain
auth_failure_delay = 0
first_valid_uid = 1
mail_location = maildir:{dir}/mail/%u:LAYOUT=fs
mail_max_userip_connections = 100
imap_idle_notify_interval = 30s
passdb {
  driver = static
  args = password={password}
}
userdb {
  driver = static
  args = uid={uid} gid={gid} home={dir}/mail/%u allow_all_users=yes
}
namespace inbox {
  inbox = yes
  separator = /
  mailbox Archive {
    special_use = \Archive
    auto = create
  }
  mailbox Drafts {
    special_use = \Drafts
    auto = create
  }
  mailbox Sent {
    special_use = \Sent
    auto = create
  }
  mailbox Bin-by-use {
    special_use = \Trash
  }
}
# A process serves many connections, since starts of processes are most of the work.
service imap {
  service_count = 1000
}
service imap-login {
  chroot =
  process_min_avail = 1
  service_count = 0
  inet_listener imap {
    port = {port}
  }
  inet_listener imaps {
    port = {tls_port}
    ssl = yes
  }
}
service anvil {
  chroot =
}
service stats {
  chroot =
}
`
