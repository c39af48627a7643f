package connect

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/source/composio"
	"github.com/countersign-dev/countersign/internal/source/linear"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/sentry"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/source/toolgateway"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// The names under which Credentials.Values holds a provider's credentials.
const (
	// ValueAPIKey is the key of Composio, and a personal one of Linear.
	ValueAPIKey = "api_key"
	// ValueToken is the token of Slack, Sentry, and Linear by OAuth.
	ValueToken = "token"
	// ValueWebhookURL is the address of an incoming webhook of Slack.
	ValueWebhookURL = "webhook_url"
)

// ToolGatewayConfig is the configuration of a source of kind tool_gateway.
type ToolGatewayConfig struct {
	// URL is the gateway's address.
	URL string `json:"url"`
	// HonoursKey says that the gateway does a call once for each
	// Idempotency-Key.
	HonoursKey bool `json:"honours_key,omitzero"`
}

// ComposioConfig is the configuration of a source of kind composio.
type ComposioConfig struct {
	// URL is Composio's address, if it is not the usual one.
	URL string `json:"url,omitzero"`
	// UserID is whose connected accounts act; ConnectedAccountID may name one.
	UserID             string `json:"user_id"`
	ConnectedAccountID string `json:"connected_account_id,omitzero"`
	// Toolkits are those whose tools are listed, Version is theirs.
	Toolkits []string `json:"toolkits"`
	Version  string   `json:"version,omitzero"`
}

// SlackConfig is the configuration of a source of kind slack.
type SlackConfig struct {
	// URL is the Web API's address, if it is not the usual one.
	URL string `json:"url,omitzero"`
	// MarkMessages leaves the key of the call in each message's metadata.
	MarkMessages bool `json:"mark_messages,omitzero"`
}

// LinearConfig is the configuration of a source of kind linear.
type LinearConfig struct {
	// URL is the API's address, if it is not the usual one.
	URL string `json:"url,omitzero"`
}

// SentryConfig is the configuration of a source of kind sentry.
type SentryConfig struct {
	// URL is Sentry's address, if it is not the usual one.
	URL string `json:"url,omitzero"`
	// Organization is the organisation's slug.
	Organization string `json:"organization"`
}

// BuiltinConfig is the configuration of a source of kind builtin.
type BuiltinConfig struct {
	// MaxWaitSeconds bounds one wait.
	MaxWaitSeconds int `json:"max_wait_seconds,omitzero"`
	// HTTP says where requests may go; without it there are no tools for them.
	HTTP *HTTPConfig `json:"http,omitzero"`
}

// HTTPConfig says where requests may go.
type HTTPConfig struct {
	// Allow are the addresses.
	Allow []AllowedConfig `json:"allow"`
	// Networks opens networks that are not of the public internet.
	Networks []string `json:"networks,omitempty"`
	// TimeoutSeconds bounds one request with its redirects.
	TimeoutSeconds int `json:"timeout_seconds,omitzero"`
}

// AllowedConfig is a part of the web that requests may go to.
type AllowedConfig struct {
	// Prefix is an address; what begins with it is allowed.
	Prefix string `json:"prefix"`
	// Methods are those that are allowed; all without any.
	Methods []string `json:"methods,omitempty"`
	// Credentials sends the source's header values along.
	Credentials bool `json:"credentials,omitzero"`
	// HonoursKey says that the host does a request once for each
	// Idempotency-Key.
	HonoursKey bool `json:"honours_key,omitzero"`
}

const addressSchema = `{"type":"string","maxLength":2000,"pattern":"^https?://[^@\\s/?#]+(/[^\\s?#]*)?$"}`

// configSchema is the JSON Schema of a kind's configuration; empty for a kind
// that has none.
func configSchema(kind string) string {
	switch kind {
	case catalog.KindToolGateway:
		return `{"type":"object","properties":{"url":` + addressSchema + `,"honours_key":{"type":"boolean"}},
			"required":["url"],"additionalProperties":false}`
	case catalog.KindComposio:
		return `{"type":"object","properties":{"url":` + addressSchema + `,"user_id":{"type":"string","minLength":1},
			"connected_account_id":{"type":"string","minLength":1},
			"toolkits":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,100}$"}},
			"version":{"type":"string","minLength":1}},"required":["user_id","toolkits"],"additionalProperties":false}`
	case catalog.KindSlack:
		return `{"type":"object","properties":{"url":` + addressSchema + `,"mark_messages":{"type":"boolean"}},"additionalProperties":false}`
	case catalog.KindLinear:
		return `{"type":"object","properties":{"url":` + addressSchema + `},"additionalProperties":false}`
	case catalog.KindSentry:
		return `{"type":"object","properties":{"url":` + addressSchema + `,"organization":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,100}$"}},
			"required":["organization"],"additionalProperties":false}`
	case catalog.KindWebhook:
		return webhookSchema
	case catalog.KindBuiltin:
		return `{"type":"object","properties":{"max_wait_seconds":{"type":"integer","minimum":1,"maximum":3600},
			"http":{"type":"object","properties":{
				"allow":{"type":"array","minItems":1,"maxItems":1000,"items":{"type":"object","properties":{
					"prefix":` + addressSchema + `,
					"methods":{"type":"array","minItems":1,"items":{"enum":["GET","HEAD","POST","PUT","PATCH","DELETE"]}},
					"credentials":{"type":"boolean"},"honours_key":{"type":"boolean"}},
					"required":["prefix"],"additionalProperties":false}},
				"networks":{"type":"array","maxItems":100,"items":{"type":"string"}},
				"timeout_seconds":{"type":"integer","minimum":1,"maximum":600}},
			"required":["allow"],"additionalProperties":false}},"additionalProperties":false}`
	}
	return ""
}

// CheckConfig checks the configuration of a source of any kind. The error
// names the field.
func CheckConfig(kind string, raw json.RawMessage) error {
	var err error
	switch kind {
	case catalog.KindMCP:
		_, err = ParseMCPConfig(raw)
	case catalog.KindBuiltin:
		_, err = parseBuiltin(raw, Credentials{})
	case catalog.KindWebhook:
		_, err = parseWebhook(raw)
	default:
		err = parseConfig(kind, raw, new(map[string]any))
	}
	return err
}

// parseConfig reads a configuration that fits its kind's schema.
func parseConfig(kind string, raw json.RawMessage, into any) error {
	schema := configSchema(kind)
	if schema == "" {
		return fault.New(fault.Invalid, "there is no source of kind %q", kind)
	}
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	err := catalog.NewSchema(json.RawMessage(schema)).Check(raw)
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

// configErrors turns what was said of arguments into what is said of a
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
			f.Message = "is not written as it has to be; an address has no user, query and fragment"
		default:
			f.Message = "breaks the rule " + string(f.Rule)
		}
		fields[i] = f
	}
	slices.SortFunc(fields, func(a, b envelope.FieldError) int { return strings.Compare(a.Pointer, b.Pointer) })
	return &envelope.InvalidError{Fields: fields}
}

// parseBuiltin reads the configuration of the tools that come along, down to
// what only they can check.
func parseBuiltin(raw json.RawMessage, creds Credentials) (builtin.Config, error) {
	var c BuiltinConfig
	if err := parseConfig(catalog.KindBuiltin, raw, &c); err != nil {
		return builtin.Config{}, err
	}
	cfg := builtin.Config{MaxWait: time.Duration(c.MaxWaitSeconds) * time.Second}
	if c.HTTP == nil {
		return cfg, nil
	}
	cfg.HTTP = &builtin.HTTPConfig{
		CallTimeout: time.Duration(c.HTTP.TimeoutSeconds) * time.Second,
		Header:      rest.NewSecrets(creds.Header),
	}
	for i, a := range c.HTTP.Allow {
		allowed := builtin.Allowed(a)
		if err := builtin.CheckAllowed(allowed); err != nil {
			return builtin.Config{}, invalidConfig(fmt.Sprintf("/http/allow/%d", i), envelope.RuleFormat, err.Error())
		}
		cfg.HTTP.Allow = append(cfg.HTTP.Allow, allowed)
	}
	for i, text := range c.HTTP.Networks {
		network, err := netip.ParsePrefix(text)
		if err != nil || network.Masked() != network {
			return builtin.Config{}, invalidConfig(fmt.Sprintf("/http/networks/%d", i), envelope.RuleFormat,
				"must be an address prefix without bits beyond its length, such as 10.1.0.0/16")
		}
		cfg.HTTP.Networks = append(cfg.HTTP.Networks, network)
	}
	return cfg, nil
}

// openBuiltin opens a source of the tools that come along.
func openBuiltin(of catalog.Source, creds Credentials, notes builtin.Notes) (source.Source, error) {
	cfg, err := parseBuiltin(of.Config, creds)
	if err != nil {
		return nil, err
	}
	cfg.Notes = notes
	return orNone(builtin.With(cfg))
}

// openProvider opens a source that speaks a provider's own API.
func openProvider(of catalog.Source, creds Credentials) (source.Source, error) {
	value := func(name string) rest.Secret { return rest.NewSecret(creds.Values[name]) }
	switch of.Kind {
	case catalog.KindToolGateway:
		var c ToolGatewayConfig
		if err := parseConfig(of.Kind, of.Config, &c); err != nil {
			return nil, err
		}
		return orNone(toolgateway.New(toolgateway.Config{
			Name: of.ID, URL: c.URL, HonoursKey: c.HonoursKey, Header: rest.NewSecrets(creds.Header),
		}))
	case catalog.KindComposio:
		var c ComposioConfig
		if err := parseConfig(of.Kind, of.Config, &c); err != nil {
			return nil, err
		}
		return orNone(composio.New(composio.Config{
			Name: of.ID, URL: c.URL, APIKey: value(ValueAPIKey), UserID: c.UserID,
			ConnectedAccountID: c.ConnectedAccountID, Toolkits: c.Toolkits, Version: c.Version,
		}))
	case catalog.KindSlack:
		var c SlackConfig
		if err := parseConfig(of.Kind, of.Config, &c); err != nil {
			return nil, err
		}
		return orNone(slack.New(slack.Config{
			Name: of.ID, URL: c.URL, MarkMessages: c.MarkMessages, Token: value(ValueToken), Webhook: value(ValueWebhookURL),
		}))
	case catalog.KindLinear:
		var c LinearConfig
		if err := parseConfig(of.Kind, of.Config, &c); err != nil {
			return nil, err
		}
		return orNone(linear.New(linear.Config{Name: of.ID, URL: c.URL, APIKey: value(ValueAPIKey), Token: value(ValueToken)}))
	case catalog.KindWebhook:
		return orNone(openWebhook(of, creds))
	case catalog.KindSentry:
		var c SentryConfig
		if err := parseConfig(of.Kind, of.Config, &c); err != nil {
			return nil, err
		}
		return orNone(sentry.New(sentry.Config{Name: of.ID, URL: c.URL, Organization: c.Organization, Token: value(ValueToken)}))
	}
	return nil, fault.New(fault.Invalid, "there is no source of kind %q", of.Kind)
}

// orNone returns a source, or no source at all where there is an error: a nil
// pointer in an interface is not nil.
func orNone[S source.Source](src S, err error) (source.Source, error) {
	if err != nil {
		return nil, err
	}
	return src, nil
}
