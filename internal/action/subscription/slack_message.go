package subscription

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/visible"
)

// post is the arguments of a message in Slack. Formatting and unfurling are off,
// because the message shows text of an agent.
type post struct {
	Channel     string  `json:"channel"`
	TS          string  `json:"ts,omitzero"`
	Text        string  `json:"text"`
	Blocks      []block `json:"blocks,omitempty"`
	Mrkdwn      *bool   `json:"mrkdwn,omitempty"`
	UnfurlLinks *bool   `json:"unfurl_links,omitempty"`
	UnfurlMedia *bool   `json:"unfurl_media,omitempty"`
}

// block is a block of Block Kit.
type block struct {
	Type     string    `json:"type"`
	BlockID  string    `json:"block_id,omitzero"`
	Text     *text     `json:"text,omitempty"`
	Fields   []text    `json:"fields,omitempty"`
	Elements []element `json:"elements,omitempty"`
	Label    *text     `json:"label,omitempty"`
	Element  *element  `json:"element,omitempty"`
	Optional bool      `json:"optional,omitzero"`
}

// element is a button or an input field.
type element struct {
	Type      string `json:"type"`
	ActionID  string `json:"action_id,omitzero"`
	Text      *text  `json:"text,omitempty"`
	Value     string `json:"value,omitzero"`
	URL       string `json:"url,omitzero"`
	Style     string `json:"style,omitzero"`
	Multiline bool   `json:"multiline,omitzero"`
	MaxLength int    `json:"max_length,omitzero"`
}

// text is a text object of Block Kit.
type text struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji,omitempty"`
}

// plain returns a plain text of an escaped string.
func plain(escaped string) *text { return &text{"plain_text", escaped, new(false)} }

// texts returns a text of each label and value, without the empty values.
func texts(labelsAndValues ...string) []text {
	var all []text
	for pair := range slices.Chunk(labelsAndValues, 2) {
		if pair[1] != "" {
			all = append(all, *plain(pair[0] + field(pair[1])))
		}
	}
	return all
}

// moment returns a text of a time, which Slack shows in the reader's time zone.
// It is the only formatted text, and holds nothing but the time.
func moment(at time.Time) *text {
	return &text{"mrkdwn", fmt.Sprintf("<!date^%d^{date_short_pretty} {time_secs}|%s>", at.Unix(), at.UTC().Format(time.RFC3339)), nil}
}

// The ids of buttons, blocks and forms.
const (
	buttonApprove = "countersign_approve"
	buttonDeny    = "countersign_deny"
	buttonReason  = "countersign_reason"
	buttonOpen    = "countersign_open"
	blockButtons  = "countersign"
	formReason    = "countersign_reason"
	maxReason     = 1000
)

// slackMessage proposes a message in Slack.
func (s *Subscription) slackMessage(t *message, line string) (*envelope.Proposal, error) {
	if t.view == nil || !requestsDecision(t) {
		return s.paragraph(sentence(t), t.id())
	}
	p, err := s.propose(slack.ToolMessageSend, s.external(t.id()), s.request(*t.view, titleOf(t.kind), line))
	if err != nil {
		return nil, err
	}
	// The request is useless after that.
	if t.view.ApprovalExpiresAt != nil {
		p.Constraints.MustRunBefore = t.view.ApprovalExpiresAt.UTC()
	}
	return p, nil
}

// requestsDecision reports whether a message requests a decision.
func requestsDecision(t *message) bool {
	if t.view.Envelope.Approval != envelope.ApprovalRequired {
		return false
	}
	return t.name == ApprovalRequest || t.kind == audit.ReturnedToApproval || t.kind == audit.Escalated || t.kind == audit.Expiring ||
		t.kind == audit.Proposed && t.it.Approval == envelope.ApprovalRequired
}

// titleOf returns the title of a request.
func titleOf(kind audit.Kind) string {
	switch kind { // the other kinds are first requests
	case audit.Expiring:
		return "Approval needed soon"
	case audit.Escalated:
		return "Approval still needed"
	case audit.ReturnedToApproval:
		return "Approval needed after all"
	}
	return "Approval needed"
}

// paragraph proposes a message of one paragraph. of is part of the external id;
// empty for a message that may be sent again.
func (s *Subscription) paragraph(escaped, of string) (*envelope.Proposal, error) {
	external := ""
	if of != "" {
		external = s.external(of)
	}
	return s.propose(slack.ToolMessageSend, external, s.post(escaped, []block{{Type: "section", Text: plain(escaped)}}))
}

func (s *Subscription) post(fallback string, blocks []block) post {
	return post{
		Channel: s.Channel, Text: fallback, Blocks: blocks, Mrkdwn: new(false), UnfurlLinks: new(false), UnfurlMedia: new(false),
	}
}

// sentence returns one line about the event.
func sentence(t *message) string {
	parts := []string{t.name}
	if t.view != nil {
		e := &t.view.Envelope
		parts = append(parts, e.Tool.Source+":"+e.Tool.Name, e.ActionID.String())
		if phase := t.view.Phase; phase != "" {
			parts = append(parts, string(phase))
		}
	}
	for _, more := range []string{t.it.Code, t.it.Subject, redact.Text(t.it.Note)} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	shown := make([]string, len(parts))
	for i, p := range parts {
		shown[i] = field(p)
	}
	return strings.Join(shown, " · ") + " (" + field(t.actor) + ")"
}

// request returns the message that requests a decision. It has no button to
// approve if it cannot show all arguments.
func (s *Subscription) request(v outbox.View, title, line string) post {
	tool := field(v.Envelope.Tool.Source + ":" + v.Envelope.Tool.Name)
	blocks, whole := s.about(v, title, line)
	if v.ApprovalExpiresAt != nil {
		blocks = append(blocks, block{Type: "section", Fields: []text{*plain("Time to decide ends"), *moment(*v.ApprovalExpiresAt)}})
	}
	value := v.Envelope.ActionID.String() + "." + approval.ETag(v)
	var buttons []element
	if whole {
		buttons = append(buttons, element{Type: "button", ActionID: buttonApprove, Text: plain("Approve"), Value: value, Style: "primary"})
	} else {
		blocks = append(blocks, block{Type: "section", Text: plain("Not all of the arguments can be shown here, so it cannot be approved here. Look at it in full first.")})
	}
	buttons = append(buttons,
		element{Type: "button", ActionID: buttonDeny, Text: plain("Deny"), Value: value, Style: "danger"},
		element{Type: "button", ActionID: buttonReason, Text: plain("Deny with a reason…"), Value: value})
	if s.Link != "" {
		buttons = append(buttons, element{Type: "button", ActionID: buttonOpen, Text: plain("Open"), URL: s.Link + v.Envelope.ActionID.String()})
	}
	blocks = append(blocks, block{Type: "actions", BlockID: blockButtons, Elements: buttons})
	return s.post(title+": "+tool, blocks)
}

// decisionMessage returns the message after the decision, without buttons.
func (s *Subscription) decisionMessage(v outbox.View, line string) post {
	title := ending(v)
	blocks, _ := s.about(v, title, line)
	if by := texts("By ", v.DecidedBy.Brief(), "Note: ", redact.Text(v.DecisionNote)); len(by) > 0 {
		blocks = append(blocks, block{Type: "section", Fields: by})
	}
	return s.post(title+": "+field(v.Envelope.Tool.Source+":"+v.Envelope.Tool.Name), blocks)
}

// ending returns how the wait for a decision ended.
func ending(v outbox.View) string {
	switch v.Envelope.Approval {
	case envelope.ApprovalAuto, envelope.ApprovalGranted:
		return "Approved"
	case envelope.ApprovalExpired:
		return "Expired: nobody decided in time"
	}
	failure := v.Envelope.Result.Error
	switch {
	case failure != nil && failure.Code == outbox.CodeUndone:
		return "Withdrawn"
	case failure != nil && failure.Code == preflight.CodeKilled:
		return "Stopped by the kill switch"
	}
	return "Denied"
}

// about returns the blocks that show an action, and whether they show all of its
// arguments.
func (s *Subscription) about(v outbox.View, title, line string) (blocks []block, whole bool) {
	e := &v.Envelope
	approvals := ""
	if v.Review.Needed > 1 {
		approvals = fmt.Sprintf("%d of %d", v.Review.Given, v.Review.Needed)
	}
	facts := texts(
		"Tool: ", e.Tool.Source+":"+e.Tool.Name, "Risk: ", string(e.Risk), "Because of: ", policy.SourceText(v.ModeSource),
		"Action: ", e.ActionID.String(), "Session: ", e.SessionID, "Automation: ", e.AutomationID, "Approvals: ", approvals,
		"Edited by: ", v.Review.EditedBy.Brief(),
	)
	clean := redact.Mail(e.ExternalID, e.Args)
	args, whole := shownArgs(clean)
	whole = whole && string(clean) == string(e.Args)
	blocks = []block{{Type: "header", Text: plain(title)}, {Type: "section", Text: plain(escape(visible.Text(line)))}, {Type: "section", Fields: facts}}
	if s.ShowMail && strings.HasPrefix(e.ExternalID, "triage:") {
		blocks = append(blocks, block{Type: "section", BlockID: blockMail + e.ActionID.String(), Text: plain(mailLater)})
	}
	return append(blocks, block{Type: "section", Text: plain(args)}), whole
}

// update proposes to change a message that was sent. state is part of the
// external id, so that one change is made once.
func (s *Subscription) update(channel, ts string, delivery envelope.ActionID, state string, to post) (*envelope.Proposal, error) {
	to.Channel, to.TS = channel, ts
	to.Mrkdwn, to.UnfurlLinks, to.UnfurlMedia = nil, nil, nil
	return s.propose(slack.ToolMessageUpdate, s.external(delivery.String()+":"+state), to)
}
