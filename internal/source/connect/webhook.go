package connect

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// The names of the signing secrets in Credentials.Values.
const (
	// ValueSigningSecret is the current secret: whsec_ and 24 to 64 bytes in
	// base64.
	ValueSigningSecret = "signing_secret"
	// ValuePreviousSecret is the one before, which signs as well until the
	// receiver knows the current one.
	ValuePreviousSecret = "previous_signing_secret"
)

// WebhookConfig is the configuration of a source of kind webhook.
type WebhookConfig struct {
	// URL is the receiver's address: https, or http to the machine itself.
	URL string `json:"url"`
	// Networks opens networks that are not of the public internet.
	Networks []string `json:"networks,omitempty"`
	// TimeoutSeconds bounds one delivery.
	TimeoutSeconds int `json:"timeout_seconds,omitzero"`
}

// parseWebhook parses and checks the configuration of a source of kind webhook.
func parseWebhook(raw json.RawMessage) (webhook.Config, error) {
	var c WebhookConfig
	if err := parseConfig(catalog.KindWebhook, raw, &c); err != nil {
		return webhook.Config{}, err
	}
	cfg := webhook.Config{URL: c.URL, Timeout: time.Duration(c.TimeoutSeconds) * time.Second}
	if err := webhook.CheckURL(c.URL); err != nil {
		return webhook.Config{}, invalidConfig("/url", envelope.RuleFormat, err.Error())
	}
	var err error
	cfg.Networks, err = parseNetworks("/networks", c.Networks)
	return cfg, err
}

// checkSigningSecrets checks the credentials of a source of kind webhook.
func checkSigningSecrets(creds Credentials) error {
	for _, name := range []string{ValueSigningSecret, ValuePreviousSecret} {
		text, given := creds.Values[name]
		if !given && name == ValuePreviousSecret {
			continue
		}
		if err := webhook.CheckSecret(text); err != nil {
			return &envelope.InvalidError{Fields: []envelope.FieldError{{
				Pointer: "/credentials/values/" + name, Rule: envelope.RuleFormat, Message: err.Error(),
			}}}
		}
	}
	return nil
}

// CheckCredentials says what is wrong with the credentials of a source of a
// kind whose rules are known here, as an *envelope.InvalidError that does not
// repeat them.
func CheckCredentials(kind string, creds Credentials) error {
	if kind == catalog.KindWebhook {
		return checkSigningSecrets(creds)
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
	for _, name := range []string{ValueSigningSecret, ValuePreviousSecret} {
		if text := creds.Values[name]; text != "" {
			cfg.Secrets = append(cfg.Secrets, rest.NewSecret(text))
		}
	}
	return webhook.New(cfg)
}
