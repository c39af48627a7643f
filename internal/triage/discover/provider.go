package discover

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
)

// OAuth is the authorization server of a provider. The owner registers a client
// there.
type OAuth struct {
	Issuer       string `json:"issuer"`
	AuthorizeURL string `json:"authorize_url"`
	TokenURL     string `json:"token_url"`
	DeviceURL    string `json:"device_url,omitzero"`
	// Read and Write are the scopes for reading, and for reading, changing and sending.
	Read  string `json:"read"`
	Write string `json:"write"`
	// Offline asks for a refresh token in the way of Google.
	Offline bool `json:"offline,omitzero"`
}

// Provider is a mail provider.
type Provider struct {
	// Name is unique; "other" is an unknown provider.
	Name  string `json:"name"`
	Title string `json:"title"`
	IMAP  Server `json:"imap"`
	SMTP  Server `json:"smtp"`
	// AppPassword is where the owner makes a password for one program; "" if the
	// provider has none, or takes the password of the account.
	AppPassword string `json:"app_password,omitzero"`
	// ReadOnly is the right to choose there for a password that can only read; "" if
	// the provider has none.
	ReadOnly string `json:"read_only,omitzero"`
	// OAuth is set if the provider takes logins with OAuth, and OnlyOAuth if it takes
	// no others.
	OAuth     *OAuth `json:"oauth,omitempty"`
	OnlyOAuth bool   `json:"only_oauth,omitzero"`
	// TrustedHost is the authserv-id of its Authentication-Results, if that is one.
	TrustedHost string `json:"trusted_host,omitzero"`
	// From is the reason for the provider: the domain, or the MX record.
	From string `json:"from"`
	// Public is set if anybody can have an address of the domain.
	Public bool `json:"public,omitzero"`
}

// known is a row of the table of providers: its domains, and the domains of its MX
// hosts. A domain "*.example" stands for those below it, and "example.*" for those
// under any top-level domain.
type known struct {
	Provider
	domains, mx []string
}

func google() *OAuth {
	const all = "https://mail.google.com/"
	return &OAuth{
		Issuer: "https://accounts.google.com", AuthorizeURL: "https://accounts.google.com/o/oauth2/v2/auth", TokenURL: "https://oauth2.googleapis.com/token",
		Read: all, Write: all, Offline: true,
	}
}

func microsoft() *OAuth {
	const at, scope = "https://login.microsoftonline.com/common/oauth2/v2.0/", "offline_access https://outlook.office.com/IMAP.AccessAsUser.All"
	return &OAuth{
		Issuer: "https://login.microsoftonline.com/common/v2.0", AuthorizeURL: at + "authorize", TokenURL: at + "token", DeviceURL: at + "devicecode",
		Read: scope, Write: scope + " https://outlook.office.com/SMTP.Send",
	}
}

// imaps returns a server with TLS, submission one with STARTTLS.
func imaps(host string) Server      { return Server{host, 993, TLS} }
func submission(host string) Server { return Server{host, 587, StartTLS} }
func smtps(host string) Server      { return Server{host, 465, TLS} }

// table returns the known providers.
func table() []known {
	simple := func(name, title, imap, smtp, app string, domains, mx []string) known {
		return known{Provider{Name: name, Title: title, IMAP: imaps(imap), SMTP: smtps(smtp), AppPassword: app}, domains, mx}
	}
	return []known{
		{Provider{
			Name: "gmail", Title: "Gmail", IMAP: imaps("imap.gmail.com"), SMTP: smtps("smtp.gmail.com"), OAuth: google(),
			AppPassword: "https://myaccount.google.com/apppasswords", TrustedHost: "mx.google.com",
		}, []string{"gmail.com", "googlemail.com"}, []string{"google.com", "googlemail.com"}},
		{Provider{
			Name: "outlook", Title: "Outlook.com", IMAP: imaps("outlook.office365.com"), SMTP: submission("smtp-mail.outlook.com"), OAuth: microsoft(), OnlyOAuth: true,
		}, []string{"outlook.*", "hotmail.*", "live.*", "msn.com", "passport.com"}, []string{"olc.protection.outlook.com"}},
		{Provider{
			Name: "microsoft365", Title: "Microsoft 365", IMAP: imaps("outlook.office365.com"), SMTP: submission("smtp.office365.com"), OAuth: microsoft(), OnlyOAuth: true,
		}, []string{"*.onmicrosoft.com"}, []string{"mail.protection.outlook.com", "mx.microsoft"}},
		{Provider{
			Name: "fastmail", Title: "Fastmail", IMAP: imaps("imap.fastmail.com"), SMTP: smtps("smtp.fastmail.com"),
			AppPassword: "https://app.fastmail.com/settings/security/apps", ReadOnly: "Mail (IMAP), read-only",
		}, []string{"fastmail.*", "*.fastmail.com", "sent.com"}, []string{"messagingengine.com"}},
		{Provider{
			Name: "proton", Title: "Proton Mail through its Bridge on this machine", IMAP: Server{"127.0.0.1", 1143, StartTLS}, SMTP: Server{"127.0.0.1", 1025, StartTLS},
			AppPassword: "the mailbox details in Proton Mail Bridge",
		}, []string{"proton.me", "protonmail.com", "protonmail.ch", "pm.me"}, []string{"protonmail.ch"}},
		simple("yahoo", "Yahoo", "imap.mail.yahoo.com", "smtp.mail.yahoo.com", "https://login.yahoo.com/account/security", []string{"yahoo.*", "ymail.com", "rocketmail.com"}, []string{"yahoodns.net"}),
		simple("aol", "AOL", "imap.aol.com", "smtp.aol.com", "https://login.aol.com/account/security", []string{"aol.com", "aim.com", "verizon.net"}, nil),
		simple("icloud", "iCloud", "imap.mail.me.com", "smtp.mail.me.com", "https://account.apple.com (App-Specific Passwords)", []string{"icloud.com", "me.com", "mac.com"}, []string{"mail.icloud.com"}),
		simple("zoho-eu", "Zoho (EU)", "imap.zoho.eu", "smtp.zoho.eu", "https://accounts.zoho.eu/home#security/app_password", []string{"zoho.eu", "zohomail.eu"}, []string{"zoho.eu"}),
		simple("zoho", "Zoho", "imap.zoho.com", "smtp.zoho.com", "https://accounts.zoho.com/home#security/app_password", []string{"zoho.com", "zohomail.com"}, []string{"zoho.com", "zohomail.com"}),
		simple("gmx-com", "GMX.com", "imap.gmx.com", "mail.gmx.com", "", []string{"gmx.com", "gmx.us", "gmx.co.uk"}, nil),
		simple("gmx", "GMX", "imap.gmx.net", "mail.gmx.net", "", []string{"gmx.*"}, []string{"gmx.net"}),
		simple("webde", "WEB.DE", "imap.web.de", "smtp.web.de", "", []string{"web.de", "email.de"}, []string{"web.de"}),
		simple("tonline", "Telekom", "secureimap.t-online.de", "securesmtp.t-online.de", "", []string{"t-online.de", "magenta.de"}, []string{"t-online.de"}),
		simple("mailbox-org", "mailbox.org", "imap.mailbox.org", "smtp.mailbox.org", "", []string{"mailbox.org"}, []string{"mailbox.org"}),
		simple("posteo", "Posteo", "posteo.de", "posteo.de", "", []string{"posteo.*"}, []string{"posteo.de"}),
		simple("yandex", "Yandex", "imap.yandex.com", "smtp.yandex.com", "https://id.yandex.com/security/app-passwords", []string{"yandex.*", "ya.ru"}, []string{"yandex.net", "yandex.ru"}),
		simple("mailru", "Mail.ru", "imap.mail.ru", "smtp.mail.ru", "https://account.mail.ru/user/2-step-auth/passwords", []string{"mail.ru", "inbox.ru", "list.ru", "bk.ru"}, []string{"mail.ru"}),
		simple("ionos", "IONOS", "imap.ionos.com", "smtp.ionos.com", "", nil, []string{"ionos.com", "1and1.com", "perfora.net"}),
		simple("ionos-de", "IONOS (DE)", "imap.ionos.de", "smtp.ionos.de", "", []string{"online.de"}, []string{"ionos.de", "kundenserver.de"}),
		simple("gandi", "Gandi", "mail.gandi.net", "mail.gandi.net", "", nil, []string{"gandi.net"}),
		simple("ovh", "OVH", "ssl0.ovh.net", "ssl0.ovh.net", "", nil, []string{"ovh.net"}),
		simple("infomaniak", "Infomaniak", "mail.infomaniak.com", "mail.infomaniak.com", "", []string{"ik.me"}, []string{"infomaniak.ch", "infomaniak.com"}),
		simple("migadu", "Migadu", "imap.migadu.com", "smtp.migadu.com", "", nil, []string{"migadu.com"}),
		simple("purelymail", "Purelymail", "imap.purelymail.com", "smtp.purelymail.com", "", nil, []string{"purelymail.com"}),
		simple("rackspace", "Rackspace", "secure.emailsrvr.com", "secure.emailsrvr.com", "", nil, []string{"emailsrvr.com"}),
		simple("namecheap", "Namecheap", "mail.privateemail.com", "mail.privateemail.com", "", nil, []string{"privateemail.com"}),
		simple("hetzner", "Hetzner", "mail.your-server.de", "mail.your-server.de", "", nil, []string{"your-server.de"}),
		simple("qq", "QQ Mail", "imap.qq.com", "smtp.qq.com", "https://wx.mail.qq.com (authorization code)", []string{"qq.com", "foxmail.com"}, []string{"qq.com"}),
		simple("comcast", "Xfinity", "imap.comcast.net", "smtp.comcast.net", "", []string{"comcast.net"}, []string{"comcast.net"}),
		simple("orange", "Orange", "imap.orange.fr", "smtp.orange.fr", "", []string{"orange.fr", "wanadoo.fr"}, []string{"orange.fr"}),
		simple("free", "Free", "imap.free.fr", "smtp.free.fr", "", []string{"free.fr"}, []string{"free.fr"}),
		simple("seznam", "Seznam", "imap.seznam.cz", "smtp.seznam.cz", "", []string{"seznam.cz", "email.cz", "post.cz"}, []string{"seznam.cz"}),
		simple("libero", "Libero", "imapmail.libero.it", "smtp.libero.it", "", []string{"libero.it"}, []string{"libero.it"}),
	}
}

// Resolver answers questions about MX records; *net.Resolver does.
type Resolver interface {
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
}

// ProviderOf returns the provider of an address. It asks dns about the domain, once,
// unless the domain is in the table; a nil dns is not asked.
func ProviderOf(ctx context.Context, address string, dns Resolver) Provider {
	_, domain, _ := strings.Cut(strings.ToLower(address), "@")
	all := table()
	for _, k := range all {
		if slices.ContainsFunc(k.domains, func(of string) bool { return matches(of, domain) }) {
			p := k.from("the domain " + domain)
			p.Public = !strings.HasSuffix(domain, ".onmicrosoft.com")
			return p
		}
	}
	other := Provider{Name: "other", Title: domain, IMAP: imaps("imap." + domain), SMTP: submission("smtp." + domain), From: "no known provider has the domain " + domain}
	if dns == nil || domain == "" {
		return other
	}
	records, err := dns.LookupMX(ctx, domain+".") // the dot keeps search domains out
	if err != nil {
		other.From = "the domain " + domain + " has no MX record that can be read"
		return other
	}
	for _, mx := range records {
		host := strings.TrimSuffix(strings.ToLower(mx.Host), ".")
		for _, k := range all {
			if slices.ContainsFunc(k.mx, func(of string) bool { return host == of || strings.HasSuffix(host, "."+of) }) {
				return k.from(fmt.Sprintf("the MX record %s of %s", host, domain))
			}
		}
	}
	return other
}

func (k known) from(text string) Provider {
	p := k.Provider
	p.From = text
	return p
}

// matches reports whether a domain matches a pattern of the table.
func matches(pattern, domain string) bool {
	if below, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(domain, below)
	}
	if name, ok := strings.CutSuffix(pattern, "*"); ok {
		rest, ok := strings.CutPrefix(domain, name)
		return ok && len(rest) <= len("com.xx") && strings.Count(rest, ".") <= 1 && rest != ""
	}
	return pattern == domain
}
