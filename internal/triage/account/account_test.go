package account_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

func server() account.Account {
	return account.Account{
		ID: uuid.Must(uuid.NewV7()), Name: "work", Kind: account.IMAP, Enabled: true, Every: time.Minute, BackfillDays: 30,
		Connection: account.Connection{Host: "imap.example.com", User: "ann@example.com", TrustedHost: "mx.example.com", Folders: []string{"INBOX", "Sent"}},
		Settings: decide.Settings{
			Addresses: []string{"ann@example.com"}, Domains: []string{"example.com"}, Levels: map[decide.Cohort]decide.Level{decide.VIP: decide.L2},
			VIP: []string{"boss@example.com", "customer.example"}, TaskLabels: []string{"todo"}, Confident: 0.8,
		},
		Proposals: plan.Config{Source: "mail", Account: "ann"},
	}
}

func directory() account.Account {
	return account.Account{Name: "files", Kind: account.Maildir, Every: time.Minute, Connection: account.Connection{Path: "/srv/mail"}}
}

func behindMCP() account.Account {
	return account.Account{Name: "mcp", Kind: account.MCP, Every: time.Minute, Connection: account.Connection{URL: "https://mail.example.com/mcp"}}
}

func TestAccountsAreCheckedByKind(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		of     account.Account
		change func(*account.Account)
		want   []string
	}{
		"a server is accepted":             {server(), func(*account.Account) {}, nil},
		"a folder is accepted":             {directory(), func(*account.Account) {}, nil},
		"a server needs a host and a user": {server(), func(a *account.Account) { a.Connection = account.Connection{} }, []string{"/connection/host", "/connection/user"}},
		"a server has no path":             {server(), func(a *account.Account) { a.Connection.Path = "/a" }, []string{"/connection/path"}},
		"a host has no port":               {server(), func(a *account.Account) { a.Connection.Host = "a b" }, []string{"/connection/host"}},
		"a port is small":                  {server(), func(a *account.Account) { a.Connection.Port = 65536 }, []string{"/connection/port"}},
		"auth is known":                    {server(), func(a *account.Account) { a.Connection.Auth = "ntlm" }, []string{"/connection/auth"}},
		"security is known":                {server(), func(a *account.Account) { a.Connection.Security = "none" }, []string{"/connection/security"}},
		"a folder is named once":           {server(), func(a *account.Account) { a.Connection.Folders = []string{"a", "a"} }, []string{"/connection/folders/1"}},
		"a folder has a path":              {directory(), func(a *account.Account) { a.Connection.Path = "" }, []string{"/connection/path"}},
		"a path is absolute":               {directory(), func(a *account.Account) { a.Connection.Path = "mail" }, []string{"/connection/path"}},
		"a path does not climb":            {directory(), func(a *account.Account) { a.Connection.Path = "/srv/../etc" }, []string{"/connection/path"}},
		"a folder has no host":             {directory(), func(a *account.Account) { a.Connection.Host = "a" }, []string{"/connection/host"}},
		"a folder has no password":         {directory(), func(a *account.Account) { a.SecretFrom = "file:/a" }, []string{"/secret_from"}},
		"an MCP server is accepted":        {behindMCP(), func(a *account.Account) { a.SecretFrom = "file:/a" }, nil},
		"an MCP server may be a program": {behindMCP(), func(a *account.Account) {
			a.Connection.URL, a.Connection.Command, a.Connection.SecretName = "", []string{"mail-mcp", "--stdio"}, "MAIL_TOKEN"
		}, nil},
		"an MCP server is somewhere":     {behindMCP(), func(a *account.Account) { a.Connection.URL = "" }, []string{"/connection/url"}},
		"an MCP server is in one place":  {behindMCP(), func(a *account.Account) { a.Connection.Command = []string{"x"} }, []string{"/connection/command"}},
		"an MCP server is at an address": {behindMCP(), func(a *account.Account) { a.Connection.URL = "mail.example.com" }, []string{"/connection/url"}},
		"a URL has no password":          {behindMCP(), func(a *account.Account) { a.Connection.URL = "https://ann:secret@example.com" }, []string{"/connection/url"}},
		"a program is not empty":         {behindMCP(), func(a *account.Account) { a.Connection.URL, a.Connection.Command = "", []string{""} }, []string{"/connection/command/0"}},
		"a header has a name":            {behindMCP(), func(a *account.Account) { a.Connection.SecretName = "X: y" }, []string{"/connection/secret_name"}},
		"a kind of MCP server is known":  {behindMCP(), func(a *account.Account) { a.Connection.Server = "smtp" }, []string{"/connection/server"}},
		"names are known":                {behindMCP(), func(a *account.Account) { a.Connection.Names = map[string]string{"tool.delete": "x"} }, []string{"/connection/names"}},
		"names of fields are pointers":   {behindMCP(), func(a *account.Account) { a.Connection.Names = map[string]string{"item.id": "uid"} }, []string{"/connection/names"}},
		"a required tool has a name":     {behindMCP(), func(a *account.Account) { a.Connection.Names = map[string]string{"tool.read": ""} }, []string{"/connection/names"}},
		"names of other servers are fixed": {behindMCP(), func(a *account.Account) {
			a.Connection.Server, a.Connection.Names = "gmail", map[string]string{"arg.id": "x"}
		}, []string{"/connection/names"}},
		"a server of fields is not trusted": {behindMCP(), func(a *account.Account) { a.Connection.Server, a.Connection.TrustedHost = "gmail", "mx.example.com" }, []string{"/connection/trusted_host"}},
		"an MCP server has no host":         {behindMCP(), func(a *account.Account) { a.Connection.Host = "a" }, []string{"/connection/host"}},
		"an IMAP server is at no URL":       {server(), func(a *account.Account) { a.Connection.URL = "https://a" }, []string{"/connection/url"}},
		"a kind is known":                   {directory(), func(a *account.Account) { a.Kind = "pop3" }, []string{"/kind"}},
		"a name is plain":                   {directory(), func(a *account.Account) { a.Name = "../x" }, []string{"/name"}},
		"a variable is one of triage":       {server(), func(a *account.Account) { a.SecretFrom = "env:COUNTERSIGN_SECRET_KEY" }, []string{"/secret_from"}},
		"only one password is set":          {server(), func(a *account.Account) { a.SecretFrom, a.Secret = "file:/a", []byte("x") }, []string{"/secret"}},
		"reading has a pace":                {server(), func(a *account.Account) { a.Every = time.Second }, []string{"/every"}},
		"backfill has an end":               {server(), func(a *account.Account) { a.BackfillDays = -1 }, []string{"/backfill_days"}},
		"an address is one":                 {server(), func(a *account.Account) { a.Settings.Addresses = []string{"Ann <ann@example.com>"} }, []string{"/settings/addresses/0"}},
		"a domain is in lower case":         {server(), func(a *account.Account) { a.Settings.Domains = []string{"Example.com"} }, []string{"/settings/domains/0"}},
		"a cohort is known":                 {server(), func(a *account.Account) { a.Settings.Levels = map[decide.Cohort]decide.Level{"boss": decide.L1} }, []string{"/settings/levels/boss"}},
		"L6 is not offered":                 {server(), func(a *account.Account) { a.Settings.Levels[decide.VIP] = decide.L6 }, []string{"/settings/levels/vip"}},
		"a confidence is a share":           {server(), func(a *account.Account) { a.Settings.Unsure = 2 }, []string{"/settings/unsure"}},
		"a source of proposals has a name":  {server(), func(a *account.Account) { a.Proposals.Source = "" }, []string{"/proposals"}},
		"examples are a choice":             {server(), func(a *account.Account) { a.Texts.ExamplesFrom = "web" }, []string{"/texts/examples_from"}},
		"examples come from a read folder": {server(), func(a *account.Account) {
			a.Texts = draft.Settings{ExamplesFrom: draft.FromFolder, ExamplesFolder: "Style"}
		}, []string{"/texts/examples_folder"}},
		"a folder of examples is read": {server(), func(a *account.Account) {
			a.Texts, a.Connection.Folders = draft.Settings{ExamplesFrom: draft.FromFolder, ExamplesFolder: "Style"}, []string{"INBOX", "Style"}
		}, nil},
		"a folder of examples is chosen": {server(), func(a *account.Account) {
			a.Texts = draft.Settings{ExamplesFrom: draft.FromRecipient, ExamplesFolder: "Sent"}
		}, []string{"/texts/examples_folder"}},
		"proposals set no label of actions": {server(), func(a *account.Account) {
			a.Proposals.Labels = map[classify.Category]string{"receipts": "Countersign_do_archive"}
		}, []string{"/proposals"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			row.change(&row.of)
			var got []string
			for _, f := range check.Fields(row.of.Check()) {
				got = append(got, f.Pointer)
			}

			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("pointers of Check (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgramsNeedPermission(t *testing.T) {
	t.Parallel()
	a := behindMCP()
	a.Connection.URL, a.Connection.Command = "", []string{"mail-mcp"}
	if _, err := a.Open(account.Access{}); !errors.Is(err, mailbox.ErrDenied) || !strings.Contains(err.Error(), "COUNTERSIGN_TRIAGE_STDIO") {
		t.Errorf("Open = %v, want an error that names the variable", err)
	}
	r, err := a.Open(account.Access{Programs: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestAccountsOfOneMailboxShareALimit(t *testing.T) {
	t.Parallel()
	var all quota.Registry
	same, other, shouted := server(), server(), server()
	other.Connection.User, shouted.Connection.Host = "ben@example.com", "IMAP.example.com"
	if same.Quota(&all) == nil || same.Quota(&all) != shouted.Quota(&all) || same.Quota(&all) == other.Quota(&all) {
		t.Error("buckets of IMAP accounts are not by host and user")
	}
	one, two, three := behindMCP(), behindMCP(), behindMCP()
	two.ID, two.Secret, three.Connection.URL = uuid.New(), []byte("x"), "https://mail.example.net"
	if one.Quota(&all) != behindMCP().Quota(&all) || one.Quota(&all) == two.Quota(&all) || one.Quota(&all) == three.Quota(&all) {
		t.Error("buckets of accounts behind MCP servers are not by server and password")
	}
	if directory().Quota(&all) != nil {
		t.Error("files have a limit")
	}
}

func TestPasswordIsKeptOnlyForTheSameServer(t *testing.T) {
	t.Parallel()
	base := server().Connection
	for name, row := range map[string]struct {
		change func(*account.Connection)
		want   bool
	}{
		"folders do not count": {func(c *account.Connection) { c.Folders = nil }, true},
		"explicit defaults":    {func(c *account.Connection) { c.Port, c.Auth, c.Security = 993, "plain", "tls" }, true},
		"another host":         {func(c *account.Connection) { c.Host = "imap.example.net" }, false},
		"another port":         {func(c *account.Connection) { c.Port = 143 }, false},
		"another user":         {func(c *account.Connection) { c.User = "bob" }, false},
		"another login":        {func(c *account.Connection) { c.Auth = "xoauth2" }, false},
		"another MCP server":   {func(c *account.Connection) { c.URL = "https://example.net" }, false},
		"another program":      {func(c *account.Connection) { c.Command = []string{"x"} }, false},
		"another header":       {func(c *account.Connection) { c.SecretName = "X-Key" }, false},
		"no protection":        {func(c *account.Connection) { c.Security = "plain" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := base
			row.change(&changed)

			if got := base.SameServer(changed); got != row.want {
				t.Errorf("SameServer = %v, want %v", got, row.want)
			}
		})
	}
}

func key(b byte) string { return base64.StdEncoding.EncodeToString(slices.Repeat([]byte{b}, 32)) }

func cipher(t *testing.T, text string) account.Cipher {
	t.Helper()
	c, err := account.NewCipher(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPasswordSources(t *testing.T) {
	t.Parallel()
	const secret = "correct horse"
	tenant, file := envelope.TenantID(uuid.New()), filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"COUNTERSIGN_TRIAGE_SECRET_ANN": secret, "COUNTERSIGN_TRIAGE_SECRET_LINES": "a\nb"}
	lookup := func(name string) (string, bool) { text, ok := variables[name]; return text, ok }
	encrypted := server()
	encrypted.Tenant = tenant
	var err error
	if encrypted.Secret, err = cipher(t, key(1)).Encrypt(tenant, encrypted.ID, secret); err != nil {
		t.Fatal(err)
	}
	other := encrypted
	other.ID = uuid.New()
	from := func(text string) account.Account { a := server(); a.SecretFrom = text; return a }
	for name, row := range map[string]struct {
		of   account.Account
		key  string
		want string
		err  string
	}{
		"a variable":                  {from("env:COUNTERSIGN_TRIAGE_SECRET_ANN"), "", secret, ""},
		"a file":                      {from("file:" + file), "", secret, ""},
		"encrypted":                   {encrypted, key(1), secret, ""},
		"none":                        {server(), "", "", ""},
		"an unset variable":           {from("env:COUNTERSIGN_TRIAGE_SECRET_BOB"), "", "", "COUNTERSIGN_TRIAGE_SECRET_BOB is not set"},
		"a variable of two lines":     {from("env:COUNTERSIGN_TRIAGE_SECRET_LINES"), "", "", "one line"},
		"a missing file":              {from("file:" + file + "x"), "", "", "the file that secret_from names"},
		"encrypted, and another key":  {encrypted, key(2), "", "set it again"},
		"encrypted, and no key":       {encrypted, "", "", account.KeyVariable + " is not set"},
		"encrypted for another":       {other, key(1), "", "set it again"},
		"encrypted, and then damaged": {func() account.Account { a := encrypted; a.Secret = a.Secret[:3]; return a }(), key(1), "", "set it again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := row.of.Password(cipher(t, row.key), lookup, os.ReadFile)

			if row.err == "" && (err != nil || got != row.want) {
				t.Errorf("Password = %q, %v, want %q", got, err, row.want)
			}
			if row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err) || strings.Contains(err.Error(), secret)) {
				t.Errorf("Password: error %v, want one with %q and without the password", err, row.err)
			}
		})
	}
}

func TestEncryptingNeedsAKeyAndOneLine(t *testing.T) {
	t.Parallel()

	if _, err := (account.Cipher{}).Encrypt(envelope.TenantID{}, uuid.New(), "x"); !errors.Is(err, fault.Conflict) {
		t.Errorf("Encrypt without a key: %v, want fault.Conflict", err)
	}
	if _, err := cipher(t, key(1)).Encrypt(envelope.TenantID{}, uuid.New(), "a\nb"); err == nil {
		t.Error("Encrypt took two lines")
	}
	if _, err := account.NewCipher("short"); err == nil || !strings.Contains(err.Error(), account.KeyVariable) {
		t.Errorf("NewCipher(short): %v, want an error that names the variable", err)
	}
}

func TestOpenChoosesTheReaderOfTheKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, part := range []string{"new", "cur", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, part), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "mbox")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, path := range map[account.Kind]string{account.Maildir: dir, account.Mbox: file, account.EML: t.TempDir()} {
		a := directory()
		a.Kind, a.Connection.Path = kind, path

		r, err := a.Open(account.Access{})

		if err != nil {
			t.Errorf("Open(%s): %v", kind, err)
			continue
		}
		folders, err := r.Folders(t.Context())
		if err != nil || !slices.ContainsFunc(folders, a.Connection.Reads) {
			t.Errorf("%s: folders %v, %v; want one to read", kind, folders, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	a := server()
	r, err := a.Open(account.Access{Secret: func(context.Context) (string, error) { return "x", nil }})
	if err != nil {
		t.Fatalf("Open(imap): %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if a.Connection.Reads(mailbox.Folder{Name: "Archive", Use: mailbox.UseArchive}) || !a.Connection.Reads(mailbox.Folder{Name: "Sent"}) {
		t.Error("Reads does not follow the folders of the account")
	}
}

func TestAccountsAreStoredByTenant(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant, stranger := envelope.TenantID(uuid.Must(uuid.NewV7())), envelope.TenantID(uuid.Must(uuid.NewV7()))
	for _, id := range []envelope.TenantID{tenant, stranger} {
		if _, err := db.Exec(t.Context(), "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", id.String(), "t-"+id.String()); err != nil {
			t.Fatal(err)
		}
	}
	in := func(of envelope.TenantID, fn func(ctx context.Context, tx pgx.Tx) error) error {
		return postgres.InTx(t.Context(), db, postgres.API(of), func(tx pgx.Tx) error { return fn(t.Context(), tx) })
	}
	put := func(a account.Account) error {
		return in(tenant, func(ctx context.Context, tx pgx.Tx) error { return account.Put(ctx, tx, tenant, a) })
	}
	get := func(of envelope.TenantID) (a account.Account, err error) {
		return a, in(of, func(ctx context.Context, tx pgx.Tx) error { a, err = account.Get(ctx, tx, of, "work"); return err })
	}
	a := server()
	a.SecretFrom = "env:COUNTERSIGN_TRIAGE_SECRET_ANN"

	if err := put(a); err != nil {
		t.Fatal(err)
	}

	got, err := get(tenant)
	want := a
	want.Tenant, want.Version = tenant, 1
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(account.Account{}, "CreatedAt", "UpdatedAt")); err != nil || diff != "" {
		t.Errorf("Get: %v (-want +got):\n%s", err, diff)
	}
	if _, err := get(stranger); !errors.Is(err, fault.NotFound) {
		t.Errorf("Get of another tenant: %v, want fault.NotFound", err)
	}
	a.Every, a.Settings = time.Hour, decide.Settings{}
	if err := put(a); err != nil {
		t.Fatal(err)
	}
	if got, err := get(tenant); err != nil || got.Version != 2 || got.Every != time.Hour {
		t.Errorf("after a change: version %d, every %s, %v; want 2 and 1h", got.Version, got.Every, err)
	}
	waits := func() (rules string) {
		t.Helper()
		if err := db.QueryRow(t.Context(), "SELECT coalesce(string_agg(key || ' ' || risk || ' ' || wait_seconds, ', '), '') FROM reviews WHERE tenant_id = $1", tenant.String()).Scan(&rules); err != nil {
			t.Fatal(err)
		}
		return rules
	}
	if _, err := db.Exec(t.Context(), "DELETE FROM reviews WHERE tenant_id = $1", tenant.String()); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"", "*", "mail"} {
		a.Proposals = plan.Config{}
		if source != "" {
			a.Proposals = plan.Config{Source: source, Account: "work"}
		}
		if err := put(a); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"mail": "mail:* low 604800"}[source]
		if got := waits(); got != want {
			t.Errorf("proposing for the source %q, the reviews are %q, want %q", source, got, want)
		}
	}
	if _, err := db.Exec(t.Context(), "UPDATE reviews SET wait_seconds = 60 WHERE tenant_id = $1", tenant.String()); err != nil {
		t.Fatal(err)
	}
	if err := put(a); err != nil || waits() != "mail:* low 60" {
		t.Errorf("after a person set the wait it is %q (%v), want it kept", waits(), err)
	}
	again := a
	again.ID = uuid.New()
	if err := put(again); !errors.Is(err, fault.Conflict) {
		t.Errorf("Put under another id: %v, want fault.Conflict", err)
	}
	remove := func(ctx context.Context, tx pgx.Tx) error { return account.Delete(ctx, tx, tenant, "work") }
	if err := in(tenant, remove); err != nil {
		t.Error(err)
	}
	if err := in(tenant, remove); !errors.Is(err, fault.NotFound) {
		t.Errorf("Delete twice: %v, want fault.NotFound", err)
	}
}
