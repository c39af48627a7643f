package connection_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func TestWebhookConfig(t *testing.T) {
	t.Parallel()
	for config, pointer := range map[string]string{
		`{"url":"https://hooks.example.com/in?x=y"}`:                  "",
		`{"url":"http://localhost:8080/","networks":["127.0.0.0/8"]}`: "",
		`{"url":"https://x.example/","timeout":"5s"}`:                 "",
		`{}`:                                  "/config/url",
		`{"url":"http://hooks.example.com/"}`: "/config/url",
		`{"url":"https://hush:hush@hooks.example.com/"}`:         "/config/url",
		`{"url":"https://x.example/","networks":["10.1.2.3/8"]}`: "/config/networks/0",
		`{"url":"https://x.example/","timeout":"61s"}`:           "/config/timeout",
		`{"url":"https://x.example/","header":"x"}`:              "/config/header",
	} {
		err := connection.CheckConfig(catalog.KindWebhook, json.RawMessage(config))

		invalid, refused := errors.AsType[*envelope.InvalidError](err)
		switch {
		case pointer == "" && err != nil:
			t.Errorf("CheckConfig(%s) = %v, want nil", config, err)
		case pointer != "" && (!refused || invalid.Fields[0].Pointer != pointer || strings.Contains(err.Error(), "hush")):
			t.Errorf("CheckConfig(%s) = %v, want it refused at %s", config, err, pointer)
		}
	}
}

func TestWebhooksAreRetriedForLong(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.Put(catalog.Source{ID: "hooks", Kind: catalog.KindWebhook, Enabled: true})
	s.List("hooks", source.Tool{Name: "deliver", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: envelope.EffectKeyed})
	tool := func() *catalog.Tool {
		found, ok := s.snapshot().Tool(policy.Key{Source: "hooks", Action: "deliver"})
		if !ok {
			t.Fatal("no tool")
		}
		return found
	}

	usual := tool()
	total, wait := time.Duration(0), usual.Retry.Base
	for range usual.MaxAttempts - 1 {
		total += wait
		wait = min(2*wait, usual.Retry.Cap)
	}

	if total < 36*time.Hour || total > 72*time.Hour || usual.Retry.Cap > time.Hour {
		t.Errorf("a message is tried for %s, at most %s apart; want about two days and an hour", total, usual.Retry.Cap)
	}
}
