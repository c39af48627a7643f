package subscription

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source/slack"
)

// InteractionKind is the kind of an interaction with a Slack message.
type InteractionKind string

// The kinds of interaction.
const (
	// InteractionApprove and InteractionDeny are the buttons that decide.
	InteractionApprove InteractionKind = "approve"
	InteractionDeny    InteractionKind = "deny"
	// InteractionAskReason opens the form for a reason.
	InteractionAskReason InteractionKind = "reason"
	// InteractionSubmitReason submits that form.
	InteractionSubmitReason InteractionKind = "submit"
	// InteractionOther has no effect here, such as a button that is a link.
	InteractionOther InteractionKind = "nothing"
)

// Interaction is a request that Slack sends when a person uses a message.
type Interaction struct {
	Kind InteractionKind
	// Team and User together identify who did it.
	Team, User string
	// Channel and TS are the message.
	Channel, TS string
	// Trigger allows opening one form, for three seconds.
	Trigger string
	// Action is the action of the message, and ETag the version that it showed.
	Action envelope.ActionID
	ETag   string
	// Reason is the text of the form.
	Reason string
}

// payload is the part of Slack's request that is used.
type payload struct {
	Type string
	Team *struct{ ID string }
	User struct {
		ID     string
		TeamID string `json:"team_id"`
	}
	TriggerID string `json:"trigger_id"`
	Container struct {
		ChannelID string `json:"channel_id"`
		MessageTS string `json:"message_ts"`
	}
	Actions []struct {
		ActionID string `json:"action_id"`
		BlockID  string `json:"block_id"`
		Value    string
	}
	View struct {
		CallbackID      string `json:"callback_id"`
		PrivateMetadata string `json:"private_metadata"`
		State           struct {
			Values map[string]map[string]struct{ Value *string }
		}
	}
}

// errPayload repeats nothing of the request.
func errPayload() error {
	return fault.New(fault.Invalid, "is not an interaction of Slack with a message of Countersign")
}

// ParseInteraction parses the body of a request whose signature was verified.
// An error is fault.Invalid.
func ParseInteraction(body []byte) (Interaction, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return Interaction{}, errPayload()
	}
	text := []byte(form.Get("payload"))
	var p payload
	if check.JSON(text) != nil || json.Unmarshal(text, &p) != nil {
		return Interaction{}, errPayload()
	}
	in := Interaction{Kind: InteractionOther, User: p.User.ID, Team: p.User.TeamID, Trigger: p.TriggerID}
	// The workspace of the user, who may be a guest in the message's workspace.
	if in.Team == "" && p.Team != nil {
		in.Team = p.Team.ID
	}
	switch p.Type {
	case "block_actions":
		return in, in.parseButton(p)
	case "view_submission":
		return in, in.parseForm(p)
	}
	return in, nil
}

func (in *Interaction) parseButton(p payload) error {
	if len(p.Actions) != 1 {
		return errPayload()
	}
	switch a := p.Actions[0]; a.ActionID {
	case buttonApprove:
		in.Kind = InteractionApprove
	case buttonDeny:
		in.Kind = InteractionDeny
	case buttonReason:
		in.Kind = InteractionAskReason
	default:
		return nil
	}
	in.Channel, in.TS = p.Container.ChannelID, p.Container.MessageTS
	return in.parseValue(p.Actions[0].Value)
}

func (in *Interaction) parseForm(p payload) error {
	if p.View.CallbackID != formReason {
		return nil
	}
	parts := strings.Split(p.View.PrivateMetadata, " ")
	if len(parts) != 3 {
		return errPayload()
	}
	in.Kind, in.Channel, in.TS = InteractionSubmitReason, parts[1], parts[2]
	if said := p.View.State.Values[formReason][formReason].Value; said != nil {
		in.Reason = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(*said, "\x00", ""), ""))
	}
	if utf8.RuneCountInString(in.Reason) > maxReason {
		return errPayload()
	}
	return in.parseValue(parts[0])
}

// parseValue parses the value of a button.
func (in *Interaction) parseValue(value string) error {
	id, seen, ok := strings.Cut(value, ".")
	if !ok || seen == "" || in.Action.UnmarshalText([]byte(id)) != nil || in.Action == (envelope.ActionID{}) {
		return errPayload()
	}
	if in.User == "" || in.Team == "" || in.Channel == "" || in.TS == "" {
		return errPayload()
	}
	in.ETag = seen
	return nil
}

// Message returns the provider id of the message.
func (in *Interaction) Message() string { return in.Channel + "/" + in.TS }

// Ephemeral proposes a message that only the user of the interaction sees. The
// same text is sent once a minute at most.
func (s *Subscription) Ephemeral(in Interaction, say string, now time.Time) (*envelope.Proposal, error) {
	// Part of the external id, so that the text can be sent again later.
	of := digest(in.Action.String(), in.User, say) + ":" + strconv.FormatInt(now.Unix()/60, 10)
	p, err := s.propose(slack.ToolMessageEphemeral, s.external("ephemeral:"+of), struct {
		Channel string `json:"channel"`
		User    string `json:"user"`
		Text    string `json:"text"`
		Mrkdwn  bool   `json:"mrkdwn"`
	}{in.Channel, in.User, field(say), false})
	if err != nil {
		return nil, err
	}
	p.Constraints.MustRunBefore = now.Add(10 * time.Minute).UTC()
	return p, nil
}

// ReasonForm proposes to open the form for the reason of a denial.
func (s *Subscription) ReasonForm(in Interaction, now time.Time) (*envelope.Proposal, error) {
	type view struct {
		Type            string  `json:"type"`
		CallbackID      string  `json:"callback_id"`
		PrivateMetadata string  `json:"private_metadata"`
		Title           *text   `json:"title"`
		Submit          *text   `json:"submit"`
		Close           *text   `json:"close"`
		Blocks          []block `json:"blocks"`
	}
	p, err := s.propose(slack.ToolViewOpen, s.external("form:"+digest(in.Trigger)), struct {
		TriggerID string `json:"trigger_id"`
		View      view   `json:"view"`
	}{in.Trigger, view{
		Type: "modal", CallbackID: formReason, PrivateMetadata: strings.Join([]string{in.Action.String() + "." + in.ETag, in.Channel, in.TS}, " "),
		Title: plain("Deny"), Submit: plain("Deny"), Close: plain("Cancel"),
		Blocks: []block{{
			Type: "input", BlockID: formReason, Label: plain("Why? The agent reads this."), Optional: true,
			Element: &element{Type: "plain_text_input", ActionID: formReason, Multiline: true, MaxLength: maxReason},
		}},
	}})
	if err != nil {
		return nil, err
	}
	p.Constraints.MustRunBefore = now.Add(3 * time.Second).UTC()
	return p, nil
}

// FormProblem returns the response that makes a form show why it was not
// accepted.
func FormProblem(say string) any {
	return map[string]any{"response_action": "errors", "errors": map[string]string{formReason: field(say)}}
}

// digest returns a short digest of some texts.
func digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		sum := sha256.Sum256([]byte(t))
		h.Write(sum[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:15])
}
