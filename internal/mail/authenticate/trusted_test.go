package authenticate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
)

func TestTrustedHeader(t *testing.T) {
	t.Parallel()
	const (
		border  = "Received: from out.example ([192.0.2.1]) by mx.example.com; Mon, 4 May 2026 03:00:00 +0000"
		inside  = "Received: by 2002:a05:6402:1:0:0:0:1 with SMTP id x; Mon, 4 May 2026 03:00:00 +0000"
		foreign = "Received: from evil ([192.0.2.1]) by mail.evil.example; Mon, 4 May 2026 02:00:00 +0000"
		from    = "From: a@shop.example"
		good    = "Authentication-Results: mx.example.com; dkim=pass header.d=shop.example; spf=pass smtp.mailfrom=a@shop.example; dmarc=pass (p=REJECT sp=NONE dis=NONE) header.from=shop.example"
		bad     = "Authentication-Results: mx.example.com; dkim=fail header.d=shop.example; spf=fail smtp.mailfrom=shop.example; dmarc=fail (p=QUARANTINE) header.from=shop.example"
	)
	header := func(dkim, spf, dmarc authenticate.Status, policy string, aligned bool) authenticate.Result {
		r := result(dkim, spf, dmarc, policy, aligned)
		r.Source = authenticate.FromHeader
		return r
	}
	passed := header(pass, pass, pass, "reject", true)
	failed := header(fail, fail, fail, "quarantine", false)
	none := authenticate.Result{SPF: unknown, DKIM: unknown, DMARC: unknown, ARC: unknown, Source: authenticate.FromNone}
	arc := header(unknown, unknown, unknown, "", false)
	arc.ARC = pass

	for name, test := range map[string]struct {
		raw  string
		want authenticate.Result
	}{
		"above the border":                 {rawMail(good, border, from), passed},
		"below the border":                 {rawMail(inside, border, good, from), passed},
		"below a foreign host":             {rawMail(border, foreign, good, from), none},
		"forged below the true one":        {rawMail(border, bad, foreign, good, from), failed},
		"forged directly below":            {rawMail(bad, border, good, from), failed},
		"of another host":                  {rawMail("Authentication-Results: mx.evil.example; dkim=pass header.d=shop.example", border, from), none},
		"of a name that only begins so":    {rawMail("Authentication-Results: mx.example.com.evil.example; dkim=pass header.d=shop.example", border, from), none},
		"with a version":                   {rawMail("Authentication-Results: MX.example.com 1; spf=softfail smtp.mailfrom=x.example", from), header(unknown, unknown, unknown, "", false)},
		"none":                             {rawMail("Authentication-Results: mx.example.com; none", from), header(unknown, unknown, unknown, "", false)},
		"a signature of somebody else":     {rawMail("Authentication-Results: mx.example.com; dkim=pass header.i=@lists.example", from), header(pass, unknown, unknown, "", false)},
		"one of two signatures":            {rawMail("Authentication-Results: mx.example.com; dkim=fail header.d=shop.example; dkim=pass header.d=mail.shop.example", from), header(pass, unknown, unknown, "", true)},
		"DMARC of another From":            {rawMail("Authentication-Results: mx.example.com; dmarc=pass header.from=other.example", from), header(unknown, unknown, unknown, "", false)},
		"two From":                         {rawMail(good, from, "From: b@bank.example"), header(pass, pass, unknown, "", false)},
		"ARC":                              {rawMail("Authentication-Results: mx.example.com; arc=pass smtp.remote-ip=192.0.2.1", from), arc},
		"results in a comment":             {rawMail("Authentication-Results: mx.example.com; spf=fail (HELO x; dkim=pass header.d=shop.example) smtp.mailfrom=x.example", from), header(unknown, fail, unknown, "", false)},
		"results in quoted text":           {rawMail(`Authentication-Results: mx.example.com; spf=fail smtp.mailfrom="x; dmarc=pass header.from=shop.example"@x.example`, from), header(unknown, fail, unknown, "", false)},
		"nested and unfinished comments":   {rawMail("Authentication-Results: mx.example.com; spf=pass (a (b) ; dkim=pass header.d=shop.example", from), header(unknown, pass, unknown, "", false)},
		"the policy as a property":         {rawMail("Authentication-Results: mx.example.com; dmarc=fail header.from=shop.example policy.dmarc=reject", from), header(unknown, unknown, fail, "reject", false)},
		"folded":                           {rawMail("Authentication-Results: mx.example.com;\r\n dkim=pass\r\n header.d=shop.example", from), header(pass, unknown, unknown, "", true)},
		"a domain that only ends like it":  {rawMail("Authentication-Results: mx.example.com; dkim=pass header.d=evilshop.example", from), header(pass, unknown, unknown, "", false)},
		"the name of a public suffix":      {rawMail("Authentication-Results: mx.example.com; dkim=pass header.d=com", "From: a@shop.com"), header(pass, unknown, unknown, "", false)},
		"a value that cannot be read":      {rawMail("Authentication-Results: mx.example.com; dkim; ;;= =", from), header(unknown, unknown, unknown, "", false)},
		"a failure in a further field":     {rawMail("Authentication-Results: mx.example.com; spf=none smtp.mailfrom=x.example", "Authentication-Results: mx.example.com; dmarc=fail (p=REJECT) header.from=shop.example", border, from), header(unknown, unknown, fail, "reject", false)},
		"a failure below the border":       {rawMail(good, border, bad, from), header(fail, fail, fail, "quarantine", false)},
		"a failure below a foreign host":   {rawMail(good, border, foreign, bad, from), passed},
		"a failure of another host":        {rawMail(good, "Authentication-Results: mx.evil.example; dmarc=fail header.from=shop.example", from), passed},
		"a pass in a further field":        {rawMail("Authentication-Results: mx.example.com; spf=none smtp.mailfrom=x.example", good, from), header(unknown, unknown, unknown, "", false)},
		"one method in two fields":         {rawMail(good, "Authentication-Results: mx.example.com; spf=none smtp.mailfrom=x.example", from), header(pass, unknown, pass, "reject", true)},
		"a weaker result in a lower field": {rawMail("Authentication-Results: mx.example.com; dmarc=pass header.from=shop.example", "Authentication-Results: mx.example.com; dmarc=none header.from=shop.example", from), header(unknown, unknown, unknown, "", false)},
		"SPF of two identities":            {rawMail("Authentication-Results: mx.example.com; spf=pass smtp.helo=shop.example; spf=fail smtp.mailfrom=shop.example", from), header(unknown, fail, unknown, "", false)},
		"DMARC twice":                      {rawMail("Authentication-Results: mx.example.com; dmarc=pass header.from=shop.example; dmarc=fail header.from=shop.example", from), header(unknown, unknown, fail, "", false)},
		"no identifier (some hosts do so)": {rawMail("Authentication-Results: spf=pass smtp.mailfrom=shop.example; dkim=pass header.d=shop.example", from), none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := check(nil, test.raw, authenticate.Config{TrustedHost: "mx.example.com"})

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Check (-want +got)\n%s", diff)
			}
		})
	}
}

func TestTrustedHeaderCoversUnsubscribe(t *testing.T) {
	t.Parallel()
	const (
		passed = "Authentication-Results: mx.example.com; dkim=pass header.d=shop.example"
		one    = "List-Unsubscribe: <https://shop.example/u>"
		post   = "List-Unsubscribe-Post: List-Unsubscribe=One-Click"
		all    = "DKIM-Signature: v=1; d=shop.example; s=a; h=From:List-Unsubscribe :\r\n List-Unsubscribe-Post; bh=x; b=y"
	)
	for name, test := range map[string]struct {
		raw  string
		want bool
	}{
		"covered":                  {rawMail(passed, all, "From: a@shop.example", one, post), true},
		"no signature":             {rawMail(passed, "From: a@shop.example", one, post), false},
		"not covered":              {rawMail(passed, "DKIM-Signature: d=shop.example; h=From", "From: a@shop.example", one, post), false},
		"one of two covers":        {rawMail(passed, all, "DKIM-Signature: d=shop.example; h=From", "From: a@shop.example", one, post), false},
		"of another domain":        {rawMail("Authentication-Results: mx.example.com; dkim=pass header.d=lists.example", all, "From: a@shop.example", one, post), false},
		"a second field":           {rawMail(passed, all, "From: a@shop.example", one, one, post), false},
		"the signature has failed": {rawMail("Authentication-Results: mx.example.com; dkim=fail header.d=shop.example", all, "From: a@shop.example", one, post), false},
	} {
		if got := check(nil, test.raw, authenticate.Config{TrustedHost: "mx.example.com"}); got.UnsubscribeSigned != test.want {
			t.Errorf("%s: signed %t, want %t", name, got.UnsubscribeSigned, test.want)
		}
	}
}

func TestSubmittedHostsOfOneSite(t *testing.T) {
	t.Parallel()
	raw := rawMail("Received: from mx.example.org by store.example.com", "Authentication-Results: example.org; dkim=pass header.d=shop.example", "From: a@shop.example")

	alone := check(nil, raw, authenticate.Config{TrustedHost: "example.org"})
	listed := check(nil, raw, authenticate.Config{TrustedHost: "example.org", Border: []string{"store.example.com"}})

	if alone.Source != authenticate.FromNone || listed.DKIM != pass {
		t.Errorf("without the host %+v, with it %+v", alone, listed)
	}
}

func FuzzTrustedHeader(f *testing.F) {
	f.Add("mx.example.com; dkim=pass header.d=a.example", "from a ([::1]) by b")
	f.Add(`mx.example.com; spf=pass ("\`, "[")
	f.Add("mx.example.com;;=; ((", "by")
	f.Fuzz(func(t *testing.T, value, hop string) {
		raw := "Received: " + hop + "\r\nAuthentication-Results: " + value + "\r\nFrom: a@bank.example\r\n\r\n"
		got := check(nil, raw, authenticate.Config{TrustedHost: "mx.example.com", Border: []string{"b"}})
		if got.Aligned && got.Source != authenticate.FromHeader {
			t.Errorf("%+v is aligned without a header", got)
		}
	})
}
