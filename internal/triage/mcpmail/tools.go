package mcpmail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mcp"
)

var (
	// errOutage is the error of a server that is unreachable or whose answers
	// are unusable.
	errOutage = errors.New("unusable answer from the server")
	// errTool is the error of a tool that reports a failure.
	errTool = errors.New("the tool failed")
)

// server is an MCP server. Only reading tools can be called: a call has a
// purpose, and only check assigns a tool to one.
type server struct {
	name    string
	profile Profile
	source  *mcp.Source
	quota   *quota.Bucket
	tools   map[purpose]readingTool
	// maxPages limits a listing, which fails after as many pages, or as many
	// messages as they would have.
	maxPages int
}

// readingTool is a tool that the profile names, that the server lists, and that
// is not declared as writing. Only check returns one.
type readingTool struct{ name string }

// check lists the server's tools and assigns the reading ones. Without check no
// tool can be called.
func (s *server) check(ctx context.Context) error {
	s.tools = nil
	if err := s.quota.Take(ctx, quota.Command); err != nil {
		return err
	}
	listed, err := s.source.List(ctx)
	if err != nil {
		return s.unlisted(ctx, err)
	}
	byName := make(map[string]source.Hints, len(listed))
	for _, t := range listed {
		byName[t.Name] = t.Hints
	}
	tools := map[purpose]readingTool{}
	for _, p := range purposes() {
		key := "tool." + string(p)
		name := s.profile.names[key]
		hints, there := byName[name]
		switch {
		case name == "" || !there && !p.required() && !s.profile.set[key]:
		case !there:
			return s.fault("the server has no tool "+strconv.Quote(name)+", which an account of this kind of server needs", mailbox.ErrUnsupported)
		case writes(hints, s.profile.unhinted):
			return s.fault("the server does not declare its tool "+strconv.Quote(name)+" as read-only: it is not called", mailbox.ErrDenied)
		default:
			tools[p] = readingTool{name}
		}
	}
	s.tools = tools
	return nil
}

// writes reports whether a tool may write. By MCP's defaults a tool without
// hints may, unless all of its kind have none.
func writes(h source.Hints, unhinted bool) bool {
	if !h.Given {
		return !unhinted
	}
	return !h.ReadOnly || h.Destructive != nil && *h.Destructive
}

func (s *server) has(p purpose) bool { return s.tools[p] != readingTool{} }

// unlisted returns the error of a failed listing.
func (s *server) unlisted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	status, after := mcp.Refused(err)
	switch code := source.StatusCode(status); {
	case code == source.CodeRateLimited || after > 0:
		return s.quota.Close("the server's limit was reached", after)
	case code == source.CodeUnauthorized:
		return s.fault("the server refuses the credential", mailbox.ErrDenied)
	}
	return fmt.Errorf("MCP server: %w: %w", err, errOutage) // the text contains none of the server
}

// call calls the tool for a purpose and returns its result. The error of a
// failed tool is errTool, ErrGone or ErrBusy, and of a result over the limit
// ErrTooLarge.
func (s *server) call(ctx context.Context, p purpose, args map[string]any) (any, error) {
	tool, ok := s.tools[p]
	if !ok {
		return nil, s.fault("the server has no tool for "+string(p), mailbox.ErrUnsupported)
	}
	for name, value := range s.profile.fixed[p] {
		if _, ok := args[name]; !ok {
			args[name] = value
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, s.fault("arguments have no JSON", mailbox.ErrInvalid)
	}
	if err := s.quota.Take(ctx, p.operation()); err != nil {
		return nil, err
	}
	out := s.source.Execute(ctx, source.Call{Tool: tool.name, Args: raw, Effect: envelope.EffectRead, Attempt: 1})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := s.outcome(p, out); err != nil {
		return nil, err
	}
	doc, answer, err := document(out.Result)
	switch {
	case err != nil && reportsFailure(answer):
		return nil, s.failed(p, answer)
	case err != nil:
		return nil, s.fault("its tool "+string(p)+" does not answer in JSON", errOutage)
	}
	if text, ok := s.profile.find(doc, "error"); ok && text != nil && text != "" {
		answer, _ := text.(string)
		return nil, s.failed(p, answer)
	}
	return doc, nil
}

// outcome returns the error of a call, if any.
func (s *server) outcome(p purpose, out source.Outcome) error {
	doing := "its tool " + string(p)
	switch {
	case out.Kind == source.KindDone && out.Code == "":
		return nil
	case out.Code == source.CodeRateLimited || out.RetryAfter > 0:
		return s.quota.Close("the server's limit was reached", out.RetryAfter)
	case out.Code == source.CodeOversized:
		return s.fault(doing+" returned more than the limit", mailbox.ErrTooLarge)
	case out.Code == source.CodeUnauthorized:
		return s.fault("the server refuses the credential", mailbox.ErrDenied)
	case out.Code == source.CodeRejected:
		return s.fault(doing+" was not called: its address is not allowed, or the server rejects the request", mailbox.ErrDenied)
	case out.Code == source.CodeToolError || out.Code == source.CodeInvalidArgs:
		return s.failed(p, string(out.Result[:min(len(out.Result), maxFailure)]))
	}
	return s.fault(doing+": "+out.Code, errOutage)
}

// maxFailure limits the part of a failure's text that is read.
const maxFailure = 4 << 10

var (
	limitWords = regexp.MustCompile(`rate.?limit|too many requests|quota.?exceeded|resource_exhausted|\b429\b|"retry_?after`)
	goneWords  = regexp.MustCompile(`not.?found|no such|does not exist|\b404\b|\bgone\b`)
	retryTime  = regexp.MustCompile(`retry[-_ ]?after[-_ ]?(ms|millis|milliseconds)?(?:seconds|secs|s)?[\\"': =]*([0-9]{4}-[0-9]{2}-[0-9]{2}t[0-9:.]+z|[0-9]+(?:\.[0-9]+)?)`)
)

// failed returns the error of a tool that reports a failure. The text selects
// the error but is never part of it.
func (s *server) failed(p purpose, answer string) error {
	answer = strings.ToLower(answer[:min(len(answer), maxFailure)])
	doing := "its tool " + string(p)
	switch {
	case limitWords.MatchString(answer):
		return s.quota.Close("the server's limit was reached", retryAfter(answer, time.Now()))
	case p == readMail && goneWords.MatchString(answer):
		return fmt.Errorf("message: %w", mailbox.ErrGone)
	}
	return s.fault(doing, errTool)
}

// retryAfter returns the wait that a failure requests, in seconds unless it has
// another unit, or 0.
func retryAfter(answer string, now time.Time) time.Duration {
	found := retryTime.FindStringSubmatch(answer)
	if found == nil {
		return 0
	}
	if at, err := time.Parse(time.RFC3339, strings.ToUpper(found[2])); err == nil {
		return max(at.Sub(now), 0)
	}
	n, err := strconv.ParseFloat(found[2], 64)
	if err != nil || n > float64(source.MaxRetryAfter/time.Millisecond) {
		return source.MaxRetryAfter
	}
	unit := time.Second
	if found[1] != "" {
		unit = time.Millisecond
	}
	return min(time.Duration(n*float64(unit)), source.MaxRetryAfter)
}

// fault returns an error with the name of the server.
func (s *server) fault(problem string, kind error) error {
	return fmt.Errorf("MCP server %s: %s: %w", s.name, problem, kind)
}

// reportsFailure reports whether a text in place of JSON reports a failure, as from
// servers that do not use the protocol's field.
func reportsFailure(answer string) bool {
	answer = strings.ToLower(answer[:min(len(answer), maxFailure)])
	return strings.HasPrefix(answer, "error") || strings.HasPrefix(answer, "failed")
}

// document returns the JSON of a tool's result: its structured content, or the
// text of its first part for servers without it. It returns the text itself if
// that is not JSON.
func document(result json.RawMessage) (doc any, answer string, err error) {
	var parts struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage `json:"structured"`
	}
	if err := json.Unmarshal(result, &parts); err != nil {
		return nil, "", err
	}
	raw := parts.Structured
	if len(raw) == 0 || string(raw) == "null" {
		if len(parts.Content) == 0 || parts.Content[0].Type != "text" {
			return nil, "", errOutage
		}
		answer = parts.Content[0].Text
		raw = json.RawMessage(answer)
	}
	doc, err = jsonref.Decode(raw)
	return doc, answer, err
}
