// Package dav is the source of tools that add events, tasks and contacts to
// collections of CalDAV and CardDAV servers.
//
// The UID and the address of an item are derived from the key of the call, and
// an item is created only where none is, so a repeated call changes nothing. A
// call is reverted by a deletion that the server makes only while the item has
// the ETag of its creation. No tool changes or deletes an item that this source
// did not create.
package dav

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools.
const (
	// ToolReminder creates an event or a task in a calendar.
	ToolReminder = "create-reminder"
	// ToolContact creates a contact in an address book.
	ToolContact = "add-contact"
	// ToolDelete deletes an item of the tools above, if it is unchanged.
	ToolDelete = "delete-item"
	// ToolFind reports whether the item of a call exists.
	ToolFind = "find-item"
	// ToolEvents returns the events of the calendars. It is internal: only a worker
	// calls it, for the briefs of a mail account.
	ToolEvents = "read-events"
)

// document defines the tools.
//
//go:embed tools.json
var document []byte

// Config configures a source.
type Config struct {
	// Name is the source's name in errors.
	Name string `json:"-"`
	// Calendars and AddressBooks are the addresses of collections by name.
	Calendars    map[string]string `json:"calendars"`
	AddressBooks map[string]string `json:"address_books"`
	// User and Password are sent by the method Basic. Token is sent as a bearer
	// token.
	User     string      `json:"user"`
	Password rest.Secret `json:"-"`
	Token    rest.Secret `json:"-"`
	// HTTP bounds the requests.
	HTTP rest.Config `json:"-"`
}

// kind is a kind of item.
type kind string

const (
	reminder kind = "reminder"
	contact  kind = "contact"
)

// suffix returns the suffix of the addresses of items, and mediaType the type of
// their content.
func (k kind) suffix() string {
	if k == contact {
		return ".vcf"
	}
	return ".ics"
}

func (k kind) mediaType() string {
	if k == contact {
		return "text/vcard; charset=utf-8"
	}
	return "text/calendar; charset=utf-8"
}

// server sends the requests of a source.
type server struct {
	name        string
	client      *rest.Client
	collections map[kind]map[string]rest.Base
	header      http.Header
}

// New returns a source of the collections in cfg. It checks cfg and does not
// connect yet.
func New(cfg Config) (*rest.Source, error) {
	s := &server{name: cfg.Name, client: rest.New(cfg.Name, cfg.HTTP), collections: make(map[kind]map[string]rest.Base), header: make(http.Header)}
	for k, addresses := range map[kind]map[string]string{reminder: cfg.Calendars, contact: cfg.AddressBooks} {
		s.collections[k] = make(map[string]rest.Base, len(addresses))
		for name, address := range addresses {
			base, err := rest.ParseBase(address)
			if u, parsed := url.Parse(address); err != nil || parsed != nil || !safehttp.Protected(u) {
				return nil, fault.New(fault.Invalid, "dav source %s: the address of %s must be https, or http to the machine itself, without user, query and fragment", cfg.Name, name)
			}
			s.collections[k][name] = base
		}
	}
	switch {
	case len(cfg.Calendars)+len(cfg.AddressBooks) == 0:
		return nil, fault.New(fault.Invalid, "dav source %s: needs a calendar or an address book", cfg.Name)
	case cfg.Token.Empty() == cfg.Password.Empty(), cfg.Password.Empty() != (cfg.User == ""):
		return nil, fault.New(fault.Invalid, "dav source %s: needs a user with a password, or a token", cfg.Name)
	case !cfg.Token.FitsHeader():
		return nil, fault.New(fault.Invalid, "dav source %s: needs a token that can be sent in a header", cfg.Name)
	case !cfg.Token.Empty():
		s.header.Set("Authorization", "Bearer "+cfg.Token.Reveal())
	default:
		login := &http.Request{Header: s.header}
		login.SetBasicAuth(cfg.User, cfg.Password.Reveal())
	}
	run := map[string]rest.Run{ToolDelete: rest.WithArgs(s.remove), ToolFind: rest.WithArgs(s.find)}
	if len(cfg.Calendars) > 0 {
		run[ToolReminder], run[ToolEvents] = rest.WithArgs(s.remind), rest.WithArgs(s.events)
	}
	if len(cfg.AddressBooks) > 0 {
		run[ToolContact] = rest.WithArgs(s.addContact)
	}
	return rest.ParseSource(s.client, document, run)
}

// item is the place of an item. It is the result of the tools that create one.
type item struct {
	Kind       kind   `json:"kind"`
	Collection string `json:"collection"`
	UID        string `json:"uid"`
	ETag       string `json:"etag"`
}

// uid returns the UID of the item of a call.
func uid(key string) string {
	digest := sha256.Sum256([]byte("dav " + key))
	return "countersign-" + hex.EncodeToString(digest[:16])
}

// collection returns the collection of a name. Without one it is the collection
// named default, or the only one.
func (s *server) collection(k kind, name string) (string, bool) {
	of := s.collections[k]
	if name == "" && len(of) == 1 {
		name = slices.Collect(maps.Keys(of))[0]
	}
	name = cmp.Or(name, "default")
	_, ok := of[name]
	return name, ok
}

// send sends a request about an item.
func (s *server) send(ctx context.Context, method string, of item, condition, value string, body []byte) (rest.Reply, source.Observation) {
	at, ok := s.collections[of.Kind][of.Collection].URL(nil, of.UID+of.Kind.suffix())
	if !ok {
		return rest.Reply{}, s.refuse(source.CodeInvalidArgs, "the item has no address")
	}
	header := s.header.Clone()
	if condition != "" {
		header.Set(condition, value)
	}
	if len(body) > 0 {
		header.Set("Content-Type", of.Kind.mediaType())
	}
	reply := s.client.Send(ctx, rest.Request{Method: method, URL: at, Header: header, Body: body})
	o := reply.Observe()
	o.Result = nil // the item is content
	if reply.Status == http.StatusConflict {
		// By RFC 4918 the collection does not exist; the effect does not either.
		o.Status = 0
		return reply, o.Permanently(source.CodeNotFound)
	}
	return reply, o
}

// create creates an item where none is.
func (s *server) create(ctx context.Context, of item, body []byte) source.Observation {
	reply, o := s.send(ctx, http.MethodPut, of, "If-None-Match", "*", body)
	exists := reply.Status == http.StatusPreconditionFailed
	if !o.Answered && !exists {
		return o
	}
	of.ETag = reply.Header.Get("ETag")
	if of.ETag == "" || exists {
		// A server may store other bytes than it received, and then sends no ETag.
		read, seen := s.send(ctx, http.MethodGet, of, "", "", nil)
		of.ETag = read.Header.Get("ETag")
		switch {
		case !seen.Answered && exists:
			return seen
		case !seen.Answered || of.ETag == "":
			return o.Unanswered(cmp.Or(seen.Code, source.CodeMalformed))
		}
	}
	o = s.place(of)
	if exists {
		return o.AlreadyDone()
	}
	return o
}

// place returns the observation of an item that exists.
func (s *server) place(of item) source.Observation {
	result, err := json.Marshal(of)
	o := source.Observation{Written: true, Answered: true, Result: result, ProviderID: of.UID}
	if err != nil {
		return o.Malformed()
	}
	return o
}

func (s *server) remind(ctx context.Context, call source.Call, in reminderArgs) source.Observation {
	name, ok := s.collection(reminder, in.Calendar)
	if !ok {
		return s.refuse(source.CodeNotFound, "the source has no calendar of this name, or several and none is named")
	}
	of := item{Kind: reminder, Collection: name, UID: uid(call.Key)}
	body, err := in.encode(of.UID, time.Now())
	if err != nil {
		return s.refuse(source.CodeInvalidArgs, "start and end must both be times with an offset or both be dates, and end must not be before start")
	}
	return s.create(ctx, of, body)
}

func (s *server) addContact(ctx context.Context, call source.Call, in contactArgs) source.Observation {
	name, ok := s.collection(contact, in.AddressBook)
	if !ok {
		return s.refuse(source.CodeNotFound, "the source has no address book of this name, or several and none is named")
	}
	of := item{Kind: contact, Collection: name, UID: uid(call.Key)}
	body, err := in.encode(of.UID, time.Now())
	if err != nil {
		return s.refuse(source.CodeInvalidArgs, "the contact cannot be written as a vCard")
	}
	return s.create(ctx, of, body)
}

// remove deletes an item while it has an ETag.
func (s *server) remove(ctx context.Context, _ source.Call, of item) source.Observation {
	if _, ok := s.collection(of.Kind, of.Collection); !ok {
		return s.refuse(source.CodeNotFound, "the source has no such collection")
	}
	reply, o := s.send(ctx, http.MethodDelete, of, "If-Match", of.ETag, nil)
	switch reply.Status {
	case http.StatusNotFound, http.StatusGone:
		return s.place(of).AlreadyDone()
	case http.StatusPreconditionFailed:
		// Radicale answers a condition on a missing item so too.
		if read, _ := s.send(ctx, http.MethodGet, of, "", "", nil); read.Status == http.StatusNotFound {
			return s.place(of).AlreadyDone()
		}
		return s.refuse(source.CodeChanged, "someone has changed the item since it was created")
	}
	if o.Answered {
		return s.place(of)
	}
	return o
}

// findArgs are the arguments of ToolFind.
type findArgs struct {
	Kind       kind   `json:"kind"`
	Collection string `json:"collection"`
	Key        string `json:"key"`
}

// find reports whether the item of a call exists, for the reconcile rules of the
// tools that create one.
func (s *server) find(ctx context.Context, _ source.Call, in findArgs) source.Observation {
	name, ok := s.collection(in.Kind, in.Collection)
	if !ok {
		return s.refuse(source.CodeNotFound, "the source has no such collection")
	}
	reply, o := s.send(ctx, http.MethodGet, item{Kind: in.Kind, Collection: name, UID: uid(in.Key)}, "", "", nil)
	switch {
	case o.Answered:
		return source.Observation{Written: true, Answered: true, Result: []byte(`{"found":true}`)}
	case reply.Status == http.StatusNotFound || reply.Status == http.StatusGone:
		return source.Observation{Written: true, Answered: true, Result: []byte(`{"found":false}`)}
	}
	return o
}

// refuse returns the observation of a call that can never succeed.
func (s *server) refuse(code, why string) source.Observation {
	return source.Refuse(code, s.name+": "+why)
}
