package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
)

const triagePath = "/api/v1/triage"

// TriageAccounts lists the mail accounts that triage reads.
func (c *Client) TriageAccounts(ctx context.Context) ([]wire.TriageAccount, error) {
	return list[wire.TriageAccount](ctx, c, triagePath+"/accounts", nil)
}

// TriageAccount reads a mail account.
func (c *Client) TriageAccount(ctx context.Context, name string) (wire.TriageAccount, error) {
	return read[wire.TriageAccount](ctx, c, triageAccountPath(name), nil)
}

// PutTriageAccount creates or changes a mail account. With a tag, that of a
// TriageAccount, it fails if the account was changed since.
func (c *Client) PutTriageAccount(ctx context.Context, name string, in wire.TriageAccountInput, tag string) (wire.TriageAccount, error) {
	var out wire.TriageAccount
	_, err := c.do(ctx, request{method: http.MethodPut, path: triageAccountPath(name), in: in, header: ifMatch(tag)}, &out)
	return out, err
}

// DeleteTriageAccount deletes a mail account and all data of triage about its
// mail.
func (c *Client) DeleteTriageAccount(ctx context.Context, name string) error {
	return c.tell(ctx, http.MethodDelete, triageAccountPath(name), nil, nil)
}

// PreviewTriageSettings compares recent decisions about the mail of an account with
// those under other settings. It changes nothing.
func (c *Client) PreviewTriageSettings(ctx context.Context, name string, in wire.TriagePreviewRequest) (wire.TriagePreview, error) {
	return post[wire.TriagePreview](ctx, c, triageAccountPath(name)+"/preview", in)
}

// ExportTriageAccount lists a page of the data of triage about a mail account, each
// row as a JSON object, without bodies of mail.
func (c *Client) ExportTriageAccount(ctx context.Context, name string, limit int, cursor string) (wire.Page[json.RawMessage], error) {
	return read[wire.Page[json.RawMessage]](ctx, c, triageAccountPath(name)+"/export", given("limit", number(limit), "cursor", cursor))
}

// PurgeTriageAccount erases a set of the data of triage about a mail account, or
// counts it. Repeat the request until it is done.
func (c *Client) PurgeTriageAccount(ctx context.Context, name string, in wire.TriagePurgeRequest) (wire.TriagePurge, error) {
	var out wire.TriagePurge
	_, err := c.do(ctx, request{method: http.MethodPost, path: triageAccountPath(name) + "/purge", in: in, repeatable: true}, &out)
	return out, err
}

// TriageLabels lists the labels that the owner of an account describes.
func (c *Client) TriageLabels(ctx context.Context, account string) ([]wire.TriageLabel, error) {
	answer, err := read[struct{ Items []wire.TriageLabel }](ctx, c, triageAccountPath(account)+"/labels", nil)
	return answer.Items, err
}

// TryTriageLabel matches the definition of a label with past messages.
func (c *Client) TryTriageLabel(ctx context.Context, account, label string, in wire.TriageLabelInput) (wire.TriageLabelTrial, error) {
	var out wire.TriageLabelTrial
	_, err := c.do(ctx, request{method: http.MethodPost, path: triageLabelPath(account, label) + "/try", in: in, repeatable: true}, &out)
	return out, err
}

// PutTriageLabel sets the definition of a label that was tried.
func (c *Client) PutTriageLabel(ctx context.Context, account, label string, in wire.TriageLabelInput) (wire.TriageLabel, error) {
	var out wire.TriageLabel
	_, err := c.do(ctx, request{method: http.MethodPut, path: triageLabelPath(account, label), in: in, repeatable: true}, &out)
	return out, err
}

// DeleteTriageLabel deletes a label with its matches.
func (c *Client) DeleteTriageLabel(ctx context.Context, account, label string) error {
	return c.tell(ctx, http.MethodDelete, triageLabelPath(account, label), nil, nil)
}

// JudgeTriageLabel stores whether a message gets a label.
func (c *Client) JudgeTriageLabel(ctx context.Context, id uuid.UUID, label string, in wire.TriageLabelDecision) (wire.TriageMessageLabel, error) {
	var out wire.TriageMessageLabel
	_, err := c.do(ctx, request{method: http.MethodPut, path: triageMessagePath(id) + "/labels/" + url.PathEscape(label), in: in, repeatable: true}, &out)
	return out, err
}

func triageLabelPath(account, label string) string {
	return triageAccountPath(account) + "/labels/" + url.PathEscape(label)
}

// UndoTriage undoes what triage did in mail accounts that name the caller as their
// operator, and returns a result for each action. Repeating a request continues it.
func (c *Client) UndoTriage(ctx context.Context, in wire.TriageUndoRequest) (wire.TriageUndoResult, error) {
	var out wire.TriageUndoResult
	_, err := c.do(ctx, request{method: http.MethodPost, path: triagePath + "/undo", in: in, repeatable: true}, &out)
	return out, err
}

// TriageRuns lists a page of the runs of an account, newest first.
func (c *Client) TriageRuns(ctx context.Context, account string, limit int, cursor string) (wire.Page[wire.TriageRun], error) {
	return read[wire.Page[wire.TriageRun]](ctx, c, triageAccountPath(account)+"/runs", given("limit", number(limit), "cursor", cursor))
}

// AskTriageRun requests a run of an account now.
func (c *Client) AskTriageRun(ctx context.Context, account string) (wire.TriageStatus, error) {
	return post[wire.TriageStatus](ctx, c, triageAccountPath(account)+"/runs", nil)
}

// TriageSetAside lists the messages of an account that are set aside, the latest
// attempt first.
func (c *Client) TriageSetAside(ctx context.Context, account string) ([]wire.TriageSetAside, error) {
	answer, err := read[struct{ Items []wire.TriageSetAside }](ctx, c, triageAccountPath(account)+"/set-aside", nil)
	return answer.Items, err
}

// RetryTriageSetAside retries the messages of an account that were set aside, and
// requests a run.
func (c *Client) RetryTriageSetAside(ctx context.Context, account string) (wire.TriageStatus, error) {
	return post[wire.TriageStatus](ctx, c, triageAccountPath(account)+"/set-aside", nil)
}

// TriageStatus returns whether and when every account, or one, is read, or the
// reason why it is not.
func (c *Client) TriageStatus(ctx context.Context, account string) ([]wire.TriageStatus, error) {
	answer, err := read[struct{ Items []wire.TriageStatus }](ctx, c, triagePath+"/status", given("account", account))
	return answer.Items, err
}

// TriageMessageFilter selects messages; its zero fields do not narrow.
type TriageMessageFilter struct {
	Account, Bucket, Category, Cohort string
	// From is an address or a domain.
	From string
	// Label is a label that an owner described.
	Label string
	// HeaderID is a Message-ID, with or without angle brackets. No other field goes
	// with it.
	HeaderID string
	// Has is a kind of finding, such as receipt.
	Has string
	// Question selects messages with, or without, a question to their owner.
	Question *bool
	// Expired selects messages of which a proposal expired without a decision and is
	// not proposed again.
	Expired bool
	Since   time.Time
	// Limit is the size of a page; zero means 50. Cursor is the NextCursor of the
	// previous page.
	Limit  int
	Cursor string
}

// TriageMessages lists a page of the messages that came in, newest first.
func (c *Client) TriageMessages(ctx context.Context, f TriageMessageFilter) (wire.Page[wire.TriageMessage], error) {
	question, expired := "", ""
	if f.Expired {
		expired = "true"
	}
	if f.Question != nil {
		question = strconv.FormatBool(*f.Question)
	}
	return read[wire.Page[wire.TriageMessage]](ctx, c, triagePath+"/messages", given(
		"account", f.Account, "bucket", f.Bucket, "category", f.Category, "cohort", f.Cohort, "from", f.From, "label", f.Label, "header_id", f.HeaderID,
		"has", f.Has, "question", question, "expired", expired, "since", moment(f.Since), "limit", number(f.Limit), "cursor", f.Cursor,
	))
}

// TriageBriefFilter selects a brief; its zero fields have the defaults of the API.
type TriageBriefFilter struct {
	// Kind is morning or evening.
	Kind  string
	Since time.Time
	// Mail shows senders, subjects and parts of mail, whatever the settings.
	Mail bool
}

// TriageBrief reads a brief about an account.
func (c *Client) TriageBrief(ctx context.Context, account string, f TriageBriefFilter) (wire.TriageBrief, error) {
	mail := ""
	if f.Mail {
		mail = "true"
	}
	return read[wire.TriageBrief](ctx, c, triageAccountPath(account)+"/brief", given("kind", f.Kind, "since", moment(f.Since), "mail", mail))
}

// TriageMeeting prepares for the meeting in the calendar of an account that begins at
// a time, or for the next one if that is zero. mail shows text whatever the settings.
func (c *Client) TriageMeeting(ctx context.Context, account string, at time.Time, mail bool) (wire.TriageMeeting, error) {
	shown := ""
	if mail {
		shown = "true"
	}
	return read[wire.TriageMeeting](ctx, c, triageAccountPath(account)+"/meeting", given("at", moment(at), "mail", shown))
}

// TriageFollowUps lists the follow-ups of an account, by due date. With
// closed it includes follow-ups that a person closed or put off.
func (c *Client) TriageFollowUps(ctx context.Context, account string, closed bool) ([]wire.TriageFollowUp, error) {
	also := ""
	if closed {
		also = "true"
	}
	answer, err := read[struct{ Items []wire.TriageFollowUp }](ctx, c, triageAccountPath(account)+"/follow-ups", given("closed", also))
	return answer.Items, err
}

// ChangeTriageFollowUp closes the follow-up that rests on a message, opens it again, or
// puts it off.
func (c *Client) ChangeTriageFollowUp(ctx context.Context, message uuid.UUID, in wire.TriageFollowUpChange) error {
	_, err := c.do(ctx, request{method: http.MethodPost, path: triageMessagePath(message) + "/follow-up", in: in, repeatable: true}, nil)
	return err
}

// TriageMessage reads a message with its decision and proposals.
func (c *Client) TriageMessage(ctx context.Context, id uuid.UUID) (wire.TriageMessageDetail, error) {
	return read[wire.TriageMessageDetail](ctx, c, triageMessagePath(id), nil)
}

// TriageWhy returns the reasons for the treatment of a message.
func (c *Client) TriageWhy(ctx context.Context, id uuid.UUID) (wire.TriageWhy, error) {
	return read[wire.TriageWhy](ctx, c, triageMessagePath(id)+"/why", nil)
}

// TriageCorrections lists the corrections of a message by people.
func (c *Client) TriageCorrections(ctx context.Context, id uuid.UUID) ([]wire.TriageCorrection, error) {
	answer, err := read[struct{ Items []wire.TriageCorrection }](ctx, c, triageMessagePath(id)+"/corrections", nil)
	return answer.Items, err
}

// CorrectTriageMessage corrects the classification of a message.
func (c *Client) CorrectTriageMessage(ctx context.Context, id uuid.UUID, in wire.TriageCorrectionInput) (wire.TriageCorrection, error) {
	return post[wire.TriageCorrection](ctx, c, triageMessagePath(id)+"/corrections", in)
}

// RetractTriageCorrection takes a correction back.
func (c *Client) RetractTriageCorrection(ctx context.Context, id uuid.UUID, correction int64) error {
	return c.tell(ctx, http.MethodDelete, triageMessagePath(id)+"/corrections/"+strconv.FormatInt(correction, 10), nil, nil)
}

func triageAccountPath(name string) string  { return triagePath + "/accounts/" + url.PathEscape(name) }
func triageMessagePath(id uuid.UUID) string { return triagePath + "/messages/" + id.String() }

// TriageTexts lists the texts that were requested for a message.
func (c *Client) TriageTexts(ctx context.Context, id uuid.UUID) ([]wire.TriageText, error) {
	answer, err := read[struct{ Items []wire.TriageText }](ctx, c, triageMessagePath(id)+"/texts", nil)
	return answer.Items, err
}

// AskTriageText requests a summary of a message, or the draft of an answer. A
// triage process with a model for texts writes it; TriageTexts then returns it.
func (c *Client) AskTriageText(ctx context.Context, id uuid.UUID, in wire.TriageTextInput) (wire.TriageText, error) {
	return post[wire.TriageText](ctx, c, triageMessagePath(id)+"/texts", in)
}

// TriageActions lists the actions of tags of every account, or of one, with the
// availability of their tools.
func (c *Client) TriageActions(ctx context.Context, account string) ([]wire.TriageAction, error) {
	answer, err := read[struct{ Items []wire.TriageAction }](ctx, c, triagePath+"/actions", given("account", account))
	return answer.Items, err
}

// TriageTagFilter selects action tags, or ends of their tries; its zero fields do
// not narrow.
type TriageTagFilter struct {
	Account string
	Message uuid.UUID
	Action  string
	// State is that of a tag, or any; empty is every one but gone. Status is that of
	// the end of a try. Each narrows one list.
	State, Status string
	// Limit is the size of a page; zero means 50. Cursor is the NextCursor of the
	// previous page.
	Limit  int
	Cursor string
}

func (f TriageTagFilter) query() url.Values {
	message := ""
	if f.Message != uuid.Nil {
		message = f.Message.String()
	}
	return given("account", f.Account, "message_id", message, "action", f.Action, "state", f.State, "status", f.Status, "limit", number(f.Limit), "cursor", f.Cursor)
}

// TriageTags lists a page of action tags, the latest first.
func (c *Client) TriageTags(ctx context.Context, f TriageTagFilter) (wire.Page[wire.TriageTag], error) {
	return read[wire.Page[wire.TriageTag]](ctx, c, triagePath+"/tags", f.query())
}

// TriageTries lists a page of the ends of tries of action tags, newest first.
func (c *Client) TriageTries(ctx context.Context, f TriageTagFilter) (wire.Page[wire.TriageTry], error) {
	return read[wire.Page[wire.TriageTry]](ctx, c, triagePath+"/tries", f.query())
}

// SetTriageTag sets an action tag on a message.
func (c *Client) SetTriageTag(ctx context.Context, id uuid.UUID, action string) (wire.TriageTag, error) {
	var out wire.TriageTag
	_, err := c.do(ctx, request{method: http.MethodPut, path: triageTagPath(id, action), repeatable: true}, &out)
	return out, err
}

// RemoveTriageTag removes an action tag from a message. An open try goes on.
func (c *Client) RemoveTriageTag(ctx context.Context, id uuid.UUID, action string) error {
	return c.tell(ctx, http.MethodDelete, triageTagPath(id, action), nil, nil)
}

// RetryTriageTag puts back the tag of a failed or skipped try, with a counter of 0.
func (c *Client) RetryTriageTag(ctx context.Context, log uuid.UUID) (wire.TriageTag, error) {
	return post[wire.TriageTag](ctx, c, triagePath+"/tries/"+log.String()+"/retry", nil)
}

func triageTagPath(id uuid.UUID, action string) string {
	return triageMessagePath(id) + "/tags/" + url.PathEscape(action)
}
