package connection

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/source/composio"
	"github.com/countersign-dev/countersign/internal/source/dav"
	"github.com/countersign-dev/countersign/internal/source/linear"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/sentry"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/source/toolgateway"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// Names of a provider's credentials in Credentials.Values.
const (
	// ValueAPIKey is the API key of Composio, or a personal one of Linear.
	ValueAPIKey = "api_key"
	// ValueToken is the token of Slack, Sentry, Linear (OAuth), or a DAV server.
	ValueToken = "token"
	// ValuePassword is the password of a DAV server.
	ValuePassword = "password"
	// ValueWebhookURL is the address of an incoming webhook of Slack.
	ValueWebhookURL = "webhook_url"
)

// BuiltinConfig is the configuration of a source of kind builtin.
type BuiltinConfig struct {
	// MaxWait bounds one wait; nil means the default of the source.
	MaxWait *envelope.Duration `json:"max_wait,omitempty"`
	// HTTP configures the HTTP tools; without it the source has none.
	HTTP *HTTPConfig `json:"http,omitzero"`
}

// HTTPConfig configures the allowed HTTP requests.
type HTTPConfig struct {
	// Allow are the allowed addresses.
	Allow []builtin.Allowed `json:"allow"`
	// Networks are allowed in addition to the public internet.
	Networks []string `json:"networks,omitempty"`
	// Timeout bounds one request with its redirects; nil means the default of
	// the source.
	Timeout *envelope.Duration `json:"timeout,omitempty"`
}

// schemas holds the JSON Schema of each kind's configuration.
//
//go:embed schemas.json
var schemas []byte

// configSchemas returns the schemas by kind.
var configSchemas = sync.OnceValues(func() (map[string]json.RawMessage, error) {
	var of map[string]json.RawMessage
	return of, json.Unmarshal(schemas, &of)
})

// CheckConfig checks the configuration of a source. The error names the invalid
// field.
func CheckConfig(kind string, raw json.RawMessage) error {
	var err error
	switch kind {
	case catalog.KindMCP:
		_, err = ParseMCPConfig(raw)
	case catalog.KindBuiltin:
		_, err = parseBuiltin(raw, Credentials{})
	case catalog.KindWebhook:
		_, err = parseWebhook(raw)
	case catalog.KindMail:
		_, _, err = parseMail(raw)
	default:
		var c struct {
			Timeout *envelope.Duration `json:"timeout"`
		}
		if err = parseConfig(kind, raw, &c); err == nil {
			_, err = parseDuration("/timeout", c.Timeout, source.MaxTimeout)
		}
	}
	return err
}

// parseConfig decodes a configuration that conforms to the schema of its kind.
func parseConfig(kind string, raw json.RawMessage, into any) error {
	of, err := configSchemas()
	if err != nil {
		return err
	}
	schema := of[kind]
	if schema == nil {
		return fault.New(fault.Invalid, "unknown source kind %q", kind)
	}
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	err = catalog.NewSchema(schema).Check(context.Background(), raw)
	if invalid, ok := errors.AsType[*envelope.InvalidError](err); ok {
		return configErrors(invalid)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return invalidConfig("", envelope.RuleSyntax, "must be a JSON object")
	}
	return nil
}

// configErrors converts errors about arguments to errors about a configuration.
func configErrors(invalid *envelope.InvalidError) error {
	fields := make([]envelope.FieldError, len(invalid.Fields))
	for i, f := range invalid.Fields {
		f.Pointer = "/config" + strings.TrimPrefix(f.Pointer, "/args")
		switch f.Rule {
		case envelope.RuleRequired:
			f.Message = "this kind of source needs it"
		case envelope.RuleUnknownField:
			f.Message = "this kind of source has no such setting"
		case envelope.RuleSyntax, envelope.RuleType:
		case envelope.RulePattern:
			f.Message = "has an invalid form; an address has no user, query and fragment, a duration has units, such as 30s or 5m"
		default:
			f.Message = "breaks the rule " + string(f.Rule)
		}
		fields[i] = f
	}
	slices.SortFunc(fields, func(a, b envelope.FieldError) int { return strings.Compare(a.Pointer, b.Pointer) })
	return &envelope.InvalidError{Fields: fields}
}

// parseBuiltin parses and checks the configuration of a source of kind builtin.
func parseBuiltin(raw json.RawMessage, creds Credentials) (builtin.Config, error) {
	var c BuiltinConfig
	if err := parseConfig(catalog.KindBuiltin, raw, &c); err != nil {
		return builtin.Config{}, err
	}
	var cfg builtin.Config
	var err error
	if cfg.MaxWait, err = parseDuration("/max_wait", c.MaxWait, time.Hour); err != nil || c.HTTP == nil {
		return cfg, err
	}
	cfg.HTTP = &builtin.HTTPConfig{Allow: c.HTTP.Allow, Header: rest.NewSecrets(creds.Header)}
	if cfg.HTTP.CallTimeout, err = parseDuration("/http/timeout", c.HTTP.Timeout, 10*time.Minute); err != nil {
		return builtin.Config{}, err
	}
	for i, a := range c.HTTP.Allow {
		if err := builtin.CheckAllowed(a); err != nil {
			return builtin.Config{}, invalidConfig(fmt.Sprintf("/http/allow/%d", i), envelope.RuleFormat, err.Error())
		}
	}
	cfg.HTTP.Networks, err = parseNetworks("/http/networks", c.HTTP.Networks)
	return cfg, err
}

// openBuiltin opens a source of Countersign's own tools.
func (p *Pool) openBuiltin(tenant envelope.TenantID, of catalog.Source, creds Credentials) (source.Source, error) {
	cfg, err := parseBuiltin(of.Config, creds)
	if err != nil {
		return nil, err
	}
	if cfg.HTTP != nil {
		cfg.HTTP.Networks = append(cfg.HTTP.Networks, p.cfg.Networks...)
	}
	if p.cfg.Notes != nil {
		cfg.Notes = p.cfg.Notes(tenant, of.ID)
	}
	return orNil(builtin.With(cfg))
}

// openProvider opens a source that calls a provider's own API.
func (p *Pool) openProvider(of catalog.Source, creds Credentials) (source.Source, error) {
	client, err := p.clientConfig(of)
	if err != nil {
		return nil, err
	}
	value := func(name string) rest.Secret { return rest.NewSecret(creds.Values[name]) }
	switch of.Kind {
	case catalog.KindToolGateway:
		return open(of, toolgateway.New, func(c *toolgateway.Config) {
			c.Name, c.HTTP, c.Header = of.ID, client, rest.NewSecrets(creds.Header)
		})
	case catalog.KindComposio:
		return open(of, composio.New, func(c *composio.Config) { c.Name, c.HTTP, c.APIKey = of.ID, client, value(ValueAPIKey) })
	case catalog.KindSlack:
		return open(of, slack.New, func(c *slack.Config) {
			c.Name, c.HTTP, c.Token, c.Webhook = of.ID, client, value(ValueToken), value(ValueWebhookURL)
		})
	case catalog.KindLinear:
		return open(of, linear.New, func(c *linear.Config) {
			c.Name, c.HTTP, c.APIKey, c.Token = of.ID, client, value(ValueAPIKey), value(ValueToken)
		})
	case catalog.KindSentry:
		return open(of, sentry.New, func(c *sentry.Config) { c.Name, c.HTTP, c.Token = of.ID, client, value(ValueToken) })
	case catalog.KindDAV:
		return open(of, dav.New, func(c *dav.Config) {
			c.Name, c.HTTP, c.Password, c.Token = of.ID, client, value(ValuePassword), value(ValueToken)
		})
	case catalog.KindWebhook:
		return orNil(p.openWebhook(of, creds))
	}
	return nil, fault.New(fault.Invalid, "unknown source kind %q", of.Kind)
}

// clientConfig returns the configuration of a provider's HTTP client.
func (p *Pool) clientConfig(of catalog.Source) (rest.Config, error) {
	client := rest.Config{Guard: safehttp.Guard{Networks: p.cfg.Networks}}
	var c struct {
		Timeout *envelope.Duration `json:"timeout"`
	}
	if of.Kind == catalog.KindWebhook { // has a limit of its own
		return client, nil
	}
	err := parseConfig(of.Kind, of.Config, &c)
	if err == nil {
		client.CallTimeout, err = parseDuration("/timeout", c.Timeout, source.MaxTimeout)
	}
	return client, err
}

// open opens a source from its configuration, to which complete adds the
// credentials.
func open[C any, S source.Source](of catalog.Source, newSource func(C) (S, error), complete func(*C)) (source.Source, error) {
	var c C
	if err := parseConfig(of.Kind, of.Config, &c); err != nil {
		return nil, err
	}
	complete(&c)
	return orNil(newSource(c))
}

// orNil returns an untyped nil if there is an error: a nil pointer in an
// interface is not nil.
func orNil[S source.Source](src S, err error) (source.Source, error) {
	if err != nil {
		return nil, err
	}
	return src, nil
}

// parseDuration returns the duration at a pointer of a configuration, from one
// second to most; 0 for nil.
func parseDuration(pointer string, d *envelope.Duration, most time.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if given := time.Duration(*d); given >= time.Second && given <= most {
		return given, nil
	}
	return 0, invalidConfig(pointer, envelope.RuleFormat, "must be from 1s to "+envelope.Duration(most).String())
}

// parseNetworks parses the networks at a pointer of a configuration.
func parseNetworks(pointer string, texts []string) ([]netip.Prefix, error) {
	networks := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil || network.Masked() != network {
			return nil, invalidConfig(fmt.Sprintf("%s/%d", pointer, i), envelope.RuleFormat,
				"must be an address prefix without bits beyond its length, such as 10.1.0.0/16")
		}
		networks[i] = network
	}
	return networks, nil
}

// Names of the signing secrets in Credentials.Values.
const (
	// ValueSigningSecret is the current secret: whsec_ and 24 to 64 bytes in
	// base64.
	ValueSigningSecret = "signing_secret"
	// valuePreviousSecret is the previous secret. It also signs, until the
	// receiver uses the current one.
	valuePreviousSecret = "previous_signing_secret"
)

// WebhookConfig is the configuration of a source of kind webhook.
type WebhookConfig struct {
	// URL is the receiver's address: https, or http to a loopback address.
	URL string `json:"url"`
	// Networks are allowed in addition to the public internet.
	Networks []string `json:"networks,omitempty"`
	// Timeout bounds one delivery; nil means the default of the source.
	Timeout *envelope.Duration `json:"timeout,omitempty"`
}

// parseWebhook parses and checks the configuration of a source of kind webhook.
func parseWebhook(raw json.RawMessage) (webhook.Config, error) {
	var c WebhookConfig
	if err := parseConfig(catalog.KindWebhook, raw, &c); err != nil {
		return webhook.Config{}, err
	}
	cfg := webhook.Config{URL: c.URL}
	if err := webhook.CheckURL(c.URL); err != nil {
		return webhook.Config{}, invalidConfig("/url", envelope.RuleFormat, err.Error())
	}
	var err error
	if cfg.Timeout, err = parseDuration("/timeout", c.Timeout, time.Minute); err != nil {
		return webhook.Config{}, err
	}
	cfg.Networks, err = parseNetworks("/networks", c.Networks)
	return cfg, err
}

// CheckCredentials checks the credentials of a source whose kind has rules for
// them. The error is an *envelope.InvalidError that does not repeat them.
func CheckCredentials(kind string, creds Credentials) error {
	if kind != catalog.KindWebhook {
		return nil
	}
	for _, name := range []string{ValueSigningSecret, valuePreviousSecret} {
		text, given := creds.Values[name]
		if !given && name == valuePreviousSecret {
			continue
		}
		if err := webhook.CheckSecret(text); err != nil {
			return check.Invalid("/credentials/values/"+name, envelope.RuleFormat, "%s", err)
		}
	}
	return nil
}

func (p *Pool) openWebhook(of catalog.Source, creds Credentials) (*rest.Source, error) {
	cfg, err := parseWebhook(of.Config)
	if err != nil {
		return nil, err
	}
	cfg.Name = of.ID
	cfg.Networks = append(cfg.Networks, p.cfg.Networks...)
	for _, name := range []string{ValueSigningSecret, valuePreviousSecret} {
		if text := creds.Values[name]; text != "" {
			cfg.Secrets = append(cfg.Secrets, rest.NewSecret(text))
		}
	}
	return webhook.New(cfg)
}
