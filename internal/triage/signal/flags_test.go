package signal_test

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// mail returns a parsed message from a line such as "Anna <anna@example.org> |
// subject | text".
func mail(line string) *message.Message {
	parts := strings.SplitN(line, " | ", 3)
	name, addr, _ := strings.Cut(parts[0], "<")
	addr = strings.ToLower(strings.TrimSuffix(addr, ">"))
	m := &message.Message{
		Fields:  []message.Field{{Name: "From", Value: parts[0]}},
		From:    []message.Address{{Name: strings.TrimSpace(name), Addr: addr}},
		Subject: parts[1], Text: parts[2], Body: parts[2], Raw: parts[2],
	}
	for _, url := range regexp.MustCompile(`https?://[^\s)]+`).FindAllString(m.Text, -1) {
		_, host, _ := strings.Cut(url, "://")
		host, _, _ = strings.Cut(host, "/")
		domain, err := publicsuffix.EffectiveTLDPlusOne(host)
		if err != nil {
			domain = host
		}
		m.Links = append(m.Links, message.Link{Text: url, URL: url, Host: host, Domain: domain})
	}
	return m
}

func TestPhishingIsFlagged(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"PayPal <service@paypa1-billing.com> | Your account is limited | We noticed unusual activity. Verify your account within 24 hours: http://paypa1-billing.com/login",
		"Microsoft Account Team <security@msft-alerts.net> | Unusual sign-in activity | Your Microsoft account will be suspended. Sign in here to verify: https://msft-alerts.net/a",
		"Dr. Harald Lenz (CEO) <ceo.office4471@gmail.com> | Quick task | Are you available? I am in a meeting and cannot talk. I need you to buy gift cards for clients, scratch them and send the codes. Keep this between us, it is urgent.",
		"IT Helpdesk <support@mailbox-upgrade.com> | Mailbox quota exceeded | Your mailbox is full. To avoid deactivation, click here to upgrade your storage: http://mailbox-upgrade.com/x",
		"DHL Express <notice@parcel-hub.top> | Delivery failed | Your DHL parcel is on hold. Pay the customs fee of 1.99 within 24 hours: http://parcel-hub.top/pay",
		"Netflix <info@netflix-payments.com> | Payment declined | Update your payment details to avoid suspension. http://netflix-payments.com",
		"Payroll <payroll.dept@outlook.com> | Direct deposit | Please confirm your identity today, log in here: https://portal.example.net to avoid interruption of your pay.",
		"Sparkasse <kunden@sicher-konto.example> | Ihr Konto wurde gesperrt | Bitte bestätigen Sie umgehend Ihr Sparkasse Konto: http://sicher-konto.example",
		"Service Client <ameli.client@gmail.com> | Dernier rappel | Votre compte est suspendu. Confirmez vos informations: http://ameli.example.net",
		"Lottery Board <award@gmail.com> | You have won | You are the winner of a lottery prize of 2 million dollars. To claim your prize send your bank details immediately.",
	} {
		if r := signal.Find(mail(line), signal.Context{}); !r.Phishing {
			t.Errorf("%.60q is not flagged: %v %v", line, r.Sums, names(r))
		}
	}
}

func TestOrdinaryMailIsNotFlagged(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"GitHub <noreply@github.com> | [GitHub] Please verify your email address | Verify your email address: https://github.com/verify. The link expires in 24 hours.",
		"PayPal <service@paypal.com> | Receipt for your payment | You sent 20.00 EUR to Buchladen. Log in to view the details: https://www.paypal.com/activity",
		"Google <no-reply@accounts.google.com> | Security alert | A new sign-in on Linux. If this was not you, check activity immediately: https://accounts.google.com/x",
		"Anna Berg <anna@nordlicht.example> | Invoice 2231 | The invoice is overdue, please pay it by Friday. Our bank details are on it.",
		"IT <it@harbourworks.example> | Password expires | Your password expires in 3 days. Change it with the self-service tool, not by a link.",
		"Lena <lena@harbourworks.example> | phishing exercise | Urgent: did you also get the mail that asks to verify your PayPal account? Do not click the link.",
		"Zapier <contact@zapier.com> | Reconnect | Your Google account needs attention. Log in to reconnect it: https://zapier.com/app",
		"Stadtwerke <rechnung@stadtwerke.example> | Ihre Rechnung | Bitte überweisen Sie den Betrag bis Freitag.",
		"Tom <tom.hale@gmail.com> | Saturday | Are you free on Saturday? Urgent, I need to book the court.",
		"Amazon.com <shipment-tracking@amazon.com> | Your package was delivered | Track your package: https://www.amazon.com/x",
		"Slack <feedback@slack.com> | Confirm your email address on Slack | Your confirmation code is ABC-DEF. https://slack.com",
		"Bookkeeping <bookkeeping@harbourworks.example> | Expenses | Please forward all invoices to me by Thursday, the deadline is fixed.",
		"Visa Office <info@consulate.example> | Appointment | Please confirm your appointment and bring your passport.",
	} {
		r := signal.Find(mail(line), signal.Context{})
		if r.Phishing || r.Injection {
			t.Errorf("%.60q: phishing %t, injection %t: %v %v", line, r.Phishing, r.Injection, r.Sums, names(r))
		}
	}
}
