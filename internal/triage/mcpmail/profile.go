package mcpmail

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
)

// purpose is what a tool is called for. There are no other calls.
type purpose string

const (
	listFolders purpose = "folders"
	listMail    purpose = "list"
	listChanges purpose = "changes"
	readMail    purpose = "read"
)

// purposes returns all of them; the first two of a server that lists and reads are
// required.
func purposes() []purpose { return []purpose{listMail, readMail, listFolders, listChanges} }

func (p purpose) required() bool { return p == listMail || p == readMail }

// operation is what a call counts as at the provider.
func (p purpose) operation() quota.Operation {
	return map[purpose]quota.Operation{listFolders: quota.Folders, listMail: quota.List, listChanges: quota.Changes, readMail: quota.Read}[p]
}

// Generic is the profile of servers that have no other, whose names an account
// can set.
const Generic = "generic"

// Profile says how the reading tools of a kind of server are called, and what
// they answer.
type Profile struct {
	server string
	// provider is whose limits the server's calls count against.
	provider string
	// unhinted says that tools of this kind of server have no annotations. Without
	// it, the server has to say of each tool that it only reads.
	unhinted bool
	// names are those of names(), empty where the server has nothing of the kind.
	names map[string]string
	// set are the names that the account chose itself.
	set map[string]bool
	// fixed are arguments that never change.
	fixed map[purpose]map[string]any
	// folders are those of a server whose tools list none.
	folders []mailbox.Folder
	// query makes the argument "arg.query" of folder and times; nil where these are
	// arguments of their own.
	query func(folder string, since, before time.Time) string
	// written is how times are written in arguments.
	written func(time.Time) any
	// numbered says that ids are numbers.
	numbered bool
	// grain is how exactly the server compares times.
	grain time.Duration
	// flags makes flags of what the server calls so.
	flags func([]string) []string
	// message reads what the tool "read" answers, where names do not say it.
	message func(doc any) fields
}

// names returns every name that a profile has, as the generic one has it: of
// tools, of arguments, and of fields, which are JSON Pointers into an answer (or,
// for item and folder, into a member of a list).
func names() map[string]string {
	return map[string]string{
		"tool.folders": "list_folders", "tool.list": "list_messages", "tool.changes": "list_changes", "tool.read": "read_message",
		"arg.folder": "folder", "arg.since": "since", "arg.before": "before", "arg.query": "", "arg.cursor": "cursor", "arg.limit": "limit", "arg.id": "id",
		"folders": "/folders", "folder.name": "/name", "folder.use": "/use",
		"list": "/messages", "list.next": "/next_cursor", "list.end": "/end",
		"item.id": "/id", "item.received": "/received_at", "item.size": "/size", "item.flags": "/flags",
		"changes.new": "/new", "changes.changed": "/changed", "changes.gone": "/gone", "changes.next": "/next", "changes.more": "/more", "changes.reset": "/reset",
		"message.raw": "/raw", "message.headers": "/headers", "message.text": "/text", "message.html": "/html",
		"message.from": "/from", "message.to": "/to", "message.cc": "/cc", "message.subject": "/subject", "message.date": "/date", "message.id": "/message_id",
		"error": "/error",
	}
}

func profiles() map[string]Profile {
	day := 24 * time.Hour
	return map[string]Profile{
		Generic: {provider: quota.Other, names: names(), grain: time.Second, written: func(t time.Time) any { return t.UTC().Format(time.RFC3339Nano) }, flags: slices.Clone[[]string]},
		// Servers that pass on what Gmail's API answers, such as the npm package
		// @shinzolabs/gmail-mcp.
		"gmail": {
			provider: "gmail-api", unhinted: true, grain: time.Second, query: gmailQuery, flags: gmailFlags, message: gmailMessage,
			folders: []mailbox.Folder{{Name: "INBOX", Use: mailbox.UseInbox}, {Name: "SENT", Use: mailbox.UseSent}},
			fixed:   map[purpose]map[string]any{readMail: {"includeBodyHtml": true}},
			names: map[string]string{
				"tool.list": "list_messages", "tool.read": "get_message", "arg.query": "q", "arg.cursor": "pageToken", "arg.limit": "maxResults", "arg.id": "id",
				"list": "/messages", "list.next": "/nextPageToken", "item.id": "/id", "item.received": "/internalDate", "item.size": "/sizeEstimate",
				"item.flags": "/labelIds", "error": "/error",
			},
		},
		// The npm package mcp-mail-server, over IMAP. It searches by days, and has no
		// pages.
		"mcp-mail-server": {
			provider: quota.Other, unhinted: true, numbered: true, grain: day, written: func(t time.Time) any { return t.UTC().Format(time.DateOnly) }, flags: slices.Clone[[]string],
			folders: []mailbox.Folder{{Name: "INBOX", Use: mailbox.UseInbox}},
			fixed:   map[purpose]map[string]any{listMail: {"inboxOnly": true, "date": "1970-01-02"}, readMail: {"markSeen": false}},
			names: map[string]string{
				"tool.list": "search_since_date", "tool.read": "get_message", "arg.since": "date", "arg.id": "uid",
				"list": "/messages", "item.id": "/uid", "item.received": "/date", "item.size": "/size", "item.flags": "/flags",
				"message.text": "/text", "message.html": "/html", "message.from": "/from", "message.to": "/to", "message.cc": "/cc",
				"message.subject": "/subject", "message.date": "/date",
			},
		},
	}
}

// Servers returns the names of the profiles, in order.
func Servers() []string { return slices.Sorted(maps.Keys(profiles())) }

// ProfileOf returns the profile of a kind of server, Generic if it is empty. Only
// the generic profile takes other names; an empty one says that the server has
// nothing of the kind. The error is for whoever sets up an account.
func ProfileOf(server string, other map[string]string) (Profile, error) {
	if server == "" {
		server = Generic
	}
	p, ok := profiles()[server]
	if !ok {
		return Profile{}, fmt.Errorf("no kind of server is called %q: it is one of %s", server, strings.Join(Servers(), ", "))
	}
	p.server = server
	if len(other) > 0 && server != Generic {
		return Profile{}, fmt.Errorf("the kind of server %s has its own names: only %s takes others", server, Generic)
	}
	p.set = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(other)) {
		if _, ok := p.names[name]; !ok {
			return Profile{}, fmt.Errorf("%q is no name of the kind of server %s", name, Generic)
		}
		if err := checkName(name, other[name]); err != nil {
			return Profile{}, err
		}
		p.names[name], p.set[name] = other[name], true
	}
	for _, name := range []string{"tool.list", "tool.read", "arg.id", "list", "item.id", "item.received"} {
		if p.names[name] == "" && other != nil {
			return Profile{}, fmt.Errorf("%s must not be empty", name)
		}
	}
	return p, nil
}

func checkName(name, value string) error {
	if len(value) > 200 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%s must be one line of at most 200 bytes", name)
	}
	isField := !strings.HasPrefix(name, "tool.") && !strings.HasPrefix(name, "arg.")
	if _, ok := jsonref.ParsePointer(value); isField && !ok {
		return fmt.Errorf("%s must be a JSON Pointer such as /items", name)
	}
	return nil
}

// Provider returns whose limits calls count against.
func (p Profile) Provider() quota.Provider {
	provider, _ := quota.Named(p.provider)
	return provider
}

// find returns the value of a field that the profile names. An empty name is no
// field, and "/" alone stands for all of the document.
func (p Profile) find(doc any, name string) (any, bool) {
	at := p.names[name]
	if at == "" {
		return nil, false
	}
	pointer, ok := jsonref.ParsePointer(strings.TrimSuffix(at, "/"))
	if !ok {
		return nil, false
	}
	return pointer.Find(doc)
}

// overlap is how far before the newest message a listing begins: mail may come to
// a server's listing later than its time says.
func (p Profile) overlap() time.Duration { return max(time.Hour, 2*p.grain) }

// gmailQuery is a search as Gmail's box takes it. Its times are whole seconds,
// and after includes its second.
func gmailQuery(folder string, since, before time.Time) string {
	terms := []string{"in:" + strings.ToLower(folder)}
	if !since.IsZero() {
		terms = append(terms, "after:"+strconv.FormatInt(since.Unix(), 10))
	}
	if !before.IsZero() {
		terms = append(terms, "before:"+strconv.FormatInt(before.Unix()+1, 10))
	}
	return strings.Join(terms, " ")
}

// gmailFlags makes flags of Gmail's labels.
func gmailFlags(labels []string) []string {
	flags := []string{mailbox.FlagSeen}
	for _, label := range labels {
		switch label {
		case "UNREAD":
			flags = slices.DeleteFunc(flags, func(f string) bool { return f == mailbox.FlagSeen })
		case "STARRED":
			flags = append(flags, mailbox.FlagFlagged)
		case "IMPORTANT":
			flags = append(flags, "$Important")
		}
	}
	return flags
}
