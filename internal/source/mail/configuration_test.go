package mail_test

import (
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

func TestBelow(t *testing.T) {
	t.Parallel()
	allowed := mail.Below([]string{"/mail", "/srv/a/b"})
	for path, want := range map[string]bool{
		"/mail": true, "/mail/ada": true, "/srv/a/b/c": true, "/mail/../etc": false, "/mailbox": false, "/srv/a": false, "/": false, "mail": false, "": false,
	} {
		if got := allowed(envelope.TenantID{}, path); got != want {
			t.Errorf("Below(%q) = %t, want %t", path, got, want)
		}
	}
	if mail.Below(nil)(envelope.TenantID{}, "/mail") {
		t.Error("Below(nil) allows a folder")
	}
}
