package mcpmail

import (
	"cmp"
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

// purpose is the purpose of a call. There are no other calls.
type purpose string

const (
	listFolders purpose = "folders"
	listMail    purpose = "list"
	listChanges purpose = "changes"
	readMail    purpose = "read"
)

// purposes returns all of them; the first two are required.
func purposes() []purpose { return []purpose{listMail, readMail, listFolders, listChanges} }

func (p purpose) required() bool { return p == listMail || p == readMail }

// operation returns the operation of a call for the provider's quota.
func (p purpose) operation() quota.Operation {
	return map[purpose]quota.Operation{listFolders: quota.Folders, listMail: quota.List, listChanges: quota.Changes, readMail: quota.Read}[p]
}

// Generic is the profile of all other servers, whose names an account can set.
const Generic = "generic"

// Profile describes the reading tools of a kind of server and their answers.
type Profile struct {
	server string
	// provider is the provider whose limits apply.
	provider string
	// unhinted reports whether tools of this kind of server have no
	// annotations. Otherwise, the server must mark each tool as read-only.
	unhinted bool
	// names has the keys of names(); a value is empty if the server lacks it.
	names map[string]string
	// set holds the names that the account chose itself.
	set map[string]bool
	// fixed holds constant arguments.
	fixed map[purpose]map[string]any
	// folders are those of a server whose tools list none.
	folders []mailbox.Folder
	// query returns the argument "arg.query" from folder and times; nil if
	// these are separate arguments.
	query func(folder string, since, before time.Time) string
	// written converts a time into an argument.
	written func(time.Time) any
	// numbered reports whether ids are numbers.
	numbered bool
	// grain is the precision with which the server compares times.
	grain time.Duration
	// flags converts the server's flags.
	flags func([]string) []string
	// message reads an answer of the tool "read" that names cannot describe.
	message func(doc any) fields
}

// names returns every name of a profile with its generic value: of tools, of
// arguments, and of fields, which are JSON Pointers into an answer (or, for
// item and folder, into a member of a list).
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
		// Servers that return answers of Gmail's API, such as the npm package
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
		// The npm package mcp-mail-server, over IMAP. It searches by day and
		// has no pages.
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

// Servers returns the sorted names of the profiles.
func Servers() []string { return slices.Sorted(maps.Keys(profiles())) }

// ProfileOf returns the profile of a kind of server; "" means Generic. Only the
// generic profile accepts other names; an empty one means that the server lacks
// the item. The error is for the person who sets up an account.
func ProfileOf(server string, other map[string]string) (Profile, error) {
	server = cmp.Or(server, Generic)
	p, ok := profiles()[server]
	if !ok {
		return Profile{}, fmt.Errorf("unknown kind of server %q; known kinds: %s", server, strings.Join(Servers(), ", "))
	}
	p.server = server
	if len(other) > 0 && server != Generic {
		return Profile{}, fmt.Errorf("the kind of server %s has its own names: only %s takes others", server, Generic)
	}
	p.set = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(other)) {
		if _, ok := p.names[name]; !ok {
			return Profile{}, fmt.Errorf("unknown name %q for a server of kind %s", name, Generic)
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

// Provider returns the provider whose limits apply.
func (p Profile) Provider() quota.Provider {
	provider, _ := quota.Named(p.provider)
	return provider
}

// find returns the value of a field that the profile names. An empty name means
// no field, and "/" alone the whole document.
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

// overlap is how far before the newest message a listing begins, since mail may
// appear in a listing later than its time.
func (p Profile) overlap() time.Duration { return max(time.Hour, 2*p.grain) }

// gmailQuery returns a search of Gmail. Its times are whole seconds, and after
// includes its second.
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

// gmailFlags converts Gmail's labels into flags.
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
