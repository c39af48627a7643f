package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// writeModels writes a file of models, and returns the variable that names it.
func writeModels(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "models.yaml")
	text := fmt.Sprintf("servers:\n  here: {url: %q}\ntiers:\n  t1: {server: here, model: test-model}\n  t2a: {server: here, model: test-model}\n", address)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "COUNTERSIGN_TRIAGE_MODELS=" + path
}

// outside returns the tables that hold a text, except for those of triage.
func (f *fixture) outside(text string) (found []string) {
	f.t.Helper()
	rows, err := f.db.Query(f.t.Context(), `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_|^information_schema$' AND c.relname !~ '^triage_' ORDER BY 1`)
	if err != nil {
		f.t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			f.t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if rows.Err() != nil || len(tables) < 20 {
		f.t.Fatalf("%d tables, %v", len(tables), rows.Err())
	}
	for _, name := range tables {
		if f.count("SELECT count(1) FROM "+name+" x WHERE position('"+text+"' IN lower(x::text)) > 0") > 0 {
			found = append(found, name)
		}
	}
	return found
}

// TestTextOfMailIsSentToModelServersOnly has a random word in the text of
// every mail.
func TestTextOfMailIsSentToModelServersOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.bind()
	f.exec("UPDATE triage_accounts SET settings = '{\"confident\": 0.999}'")
	canary := "canary" + strings.ToLower(rand.Text())
	for i := range 5 {
		mail := fmt.Sprintf("Message-ID: <m%d@b.example>\nDate: Thu, 05 Mar 2026 16:23:00 +0000\nFrom: Eve <eve@b.example>\nTo: ann@tallis.example\n"+
			"Subject: The %[2]s fence %[1]d\n\nSomebody should look at the %[2]s some day.\n", i, canary)
		if err := os.WriteFile(filepath.Join(f.dir, "cur", fmt.Sprintf("17000001%d.test.host:2,", i)), []byte(mail), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fake, received := modeltest.New(t, modeltest.Config{}), &collector{}
	server := httptest.NewServer(received)
	t.Cleanup(server.Close)
	environ := append(f.environ, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, writeModels(t, fake.URL()))
	var out, errs bytes.Buffer

	code := run(t.Context(), []string{"--once"}, environ, &out, &errs)

	if code != config.ExitOK || errs.Len() > 0 {
		t.Fatalf("run = %d with %q", code, errs.String())
	}
	asked := 0
	for _, r := range fake.Requests() {
		asked += strings.Count(strings.ToLower(r.User), canary)
	}
	if asked == 0 || f.count("SELECT count(1) FROM triage_decisions WHERE tier <> 'embedded'") < 5 {
		t.Errorf("models were shown the word %d times, and decided about too few messages", asked)
	}
	if f.count("SELECT count(1) FROM triage_messages WHERE position('"+canary+"' IN body) > 0") != 5 {
		t.Error("the word is not in the tables of triage, so that nothing is looked for")
	}
	if tables := f.outside(canary); len(tables) > 0 {
		t.Errorf("text of mail is in %v", tables)
	}
	if f.count("SELECT count(1) FROM triage_decisions WHERE position('"+canary+"' IN answers::text) > 0") > 0 {
		t.Error("answers hold text of mail")
	}
	received.mu.Lock()
	defer received.mu.Unlock()
	for name, text := range map[string]string{"the log": out.String(), "what was exported": received.text.String()} {
		if strings.Contains(strings.ToLower(text), canary) {
			t.Errorf("%s has text of mail", name)
		}
	}
	for _, name := range []string{"ask models", "countersign.triage.questions", "countersign.triage.model.refusals"} {
		if !strings.Contains(received.text.String(), name) {
			t.Errorf("%q was not exported", name)
		}
	}
	if !strings.Contains(out.String(), `"models asked"`) {
		t.Error("the log does not say that models were asked")
	}
}

func TestErrorNamesAnUnusableModelFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.bind()
	var out, errs bytes.Buffer

	code := run(t.Context(), []string{"--once"}, append(f.environ, writeModels(t, "http://user@example.com")), &out, &errs)

	if code == config.ExitOK || !strings.Contains(errs.String(), "COUNTERSIGN_TRIAGE_MODELS") || !strings.Contains(errs.String(), "models.yaml") {
		t.Errorf("run = %d with %q, want the variable and the file", code, errs.String())
	}
	if n := f.count("SELECT count(1) FROM triage_messages"); n != 0 {
		t.Errorf("%d messages were read", n)
	}
}
