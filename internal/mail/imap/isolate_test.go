package imap

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// metadata scripts a server that has messages with the UIDs 1 to n and answers
// FETCH by a function. "" stands for good metadata; "close" closes the
// connection. The returned counter counts the FETCH commands.
func metadata(t *testing.T, caps string, n *atomic.Int64, of func(uid imap.UID) string) (*server, *atomic.Int64) {
	t.Helper()
	var fetches atomic.Int64
	s := script(t, caps, func(command, arguments string) string {
		last := n.Load()
		switch command {
		case "EXAMINE":
			modSeq := ""
			if strings.Contains(caps, "CONDSTORE") {
				modSeq = fmt.Sprintf("* OK [HIGHESTMODSEQ %d] m\r\n", last+1)
			}
			return fmt.Sprintf("* %d EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT %d] n\r\n%s{tag} OK [READ-ONLY]\r\n", last, last+1, modSeq)
		case "UID SEARCH":
			set := uidSet(t, strings.TrimPrefix(arguments[strings.LastIndexByte(arguments, ' ')+1:], "UID "), imap.UID(last))
			reply := "* SEARCH"
			for uid := imap.UID(1); uid <= imap.UID(last); uid++ {
				if set.Contains(uid) {
					reply += fmt.Sprint(" ", uid)
				}
			}
			return reply + "\r\n{tag} OK\r\n"
		case "UID FETCH":
			fetches.Add(1)
			list, _, _ := strings.Cut(arguments, " ")
			set, reply := uidSet(t, list, imap.UID(last)), ""
			for uid := imap.UID(1); uid <= imap.UID(last); uid++ {
				if !set.Contains(uid) {
					continue
				}
				if strings.Contains(arguments, "BODY.PEEK") {
					reply += fmt.Sprintf("* %d FETCH (UID %d BODY[] {5}\r\nhello)\r\n", uid, uid)
					continue
				}
				switch answer := of(uid); {
				case answer == "":
					reply += fmt.Sprintf("* %d FETCH (UID %d FLAGS (\\Seen) INTERNALDATE \"02-Jan-2026 15:04:05 +0000\" RFC822.SIZE 5)\r\n", uid, uid)
				case strings.HasPrefix(answer, "{tag}"):
					return reply + answer + "\r\n"
				default:
					reply += fmt.Sprintf("* %d FETCH (UID %d %s\r\n", uid, uid, answer)
				}
			}
			return reply + "{tag} OK\r\n"
		}
		return ""
	})
	return s, &fetches
}

func uidSet(t *testing.T, text string, last imap.UID) (set imap.UIDSet) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, ":")
		if !ranged {
			to = from
		}
		number := func(text string) imap.UID {
			if text == "*" {
				return last
			}
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				t.Errorf("the set %q: %v", text, err)
			}
			return imap.UID(n)
		}
		set = append(set, imap.UIDRange{Start: number(from), Stop: number(to)})
	}
	return set
}

// badMetadata returns unreadable answers about one message that do not spoil
// the whole answer.
func badMetadata() map[string]string {
	return map[string]string{
		"date without form":   `FLAGS () INTERNALDATE "yesterday" RFC822.SIZE 5)`,
		"date of no calendar": `FLAGS () INTERNALDATE "31-Feb-2026 25:61:00 +0000" RFC822.SIZE 5)`,
		"NIL date":            `FLAGS () INTERNALDATE NIL RFC822.SIZE 5)`,
		"negative size":       `FLAGS () INTERNALDATE "02-Jan-2026 15:04:05 +0000" RFC822.SIZE -1)`,
		"size of 30 digits":   `FLAGS () INTERNALDATE "02-Jan-2026 15:04:05 +0000" RFC822.SIZE 999999999999999999999999999999)`,
		"flags without list":  `FLAGS \Seen INTERNALDATE "02-Jan-2026 15:04:05 +0000" RFC822.SIZE 5)`,
		"NUL in a flag":       "FLAGS (a\x00b) INTERNALDATE \"02-Jan-2026 15:04:05 +0000\" RFC822.SIZE 5)",
		"unknown attribute":   `X-COLOUR (red))`,
		"open parenthesis":    `FLAGS (`,
		"no date":             `FLAGS () RFC822.SIZE 5)`,
		"refusal":             `{tag} NO [SERVERBUG] internal error`,
		"farewell":            "* BYE crashed\r\n{tag} NO gone",
	}
}

// TestUnreadableMetadataStopsNoOtherMessage has one message with unreadable metadata:
// at the first listing among nine, at the next one alone.
func TestUnreadableMetadataStopsNoOtherMessage(t *testing.T) {
	t.Parallel()

	for name, bad := range badMetadata() {
		for _, caps := range []string{"", "CONDSTORE"} {
			t.Run(name+" "+caps, func(t *testing.T) {
				t.Parallel()
				var last atomic.Int64
				last.Store(9)
				s, fetches := metadata(t, caps, &last, func(uid imap.UID) string {
					if uid == 4 || uid == 10 {
						return bad
					}
					return ""
				})
				c := s.config("alice")
				c.Attempts = 2
				r := s.reader(t, c)
				listed := func(items []mailbox.Item) (all []string) {
					for _, it := range items {
						if it.Received.IsZero() {
							t.Errorf("%s has no time", it.Key)
						}
						all = append(all, it.Key+map[bool]string{true: " unusable"}[it.Unusable != ""])
					}
					return all
				}

				changes, err := r.Changes(t.Context(), "INBOX", nil, 100, nil)
				want := []string{"7:1", "7:2", "7:3", "7:4 unusable", "7:5", "7:6", "7:7", "7:8", "7:9"}
				if got := listed(changes.New); err != nil || !slices.Equal(got, want) {
					t.Fatalf("new are %v, %v, want %v", got, err, want)
				}
				before := fetches.Load()
				if _, err := r.Changes(t.Context(), "INBOX", changes.Next, 100, nil); err != nil || fetches.Load() > before+1 {
					t.Errorf("the next look: %v after %d FETCH, want no search for the message once more", err, fetches.Load()-before)
				}
				last.Store(10)
				next, err := r.Changes(t.Context(), "INBOX", changes.Next, 100, nil)
				if got := listed(next.New); err != nil || !slices.Equal(got, []string{"7:10 unusable"}) {
					t.Errorf("then new are %v, %v, want 7:10, unusable", got, err)
				}
				older, _, err := s.reader(t, c).Older(t.Context(), "INBOX", nil, 3)
				if got := listed(older); err != nil || !slices.Equal(got, []string{"7:10 unusable", "7:9", "7:8"}) {
					t.Errorf("older are %v, %v", got, err)
				}
				if _, err := s.reader(t, c).End(t.Context(), "INBOX"); err != nil {
					t.Errorf("the end: %v", err)
				}
				err = r.Read(t.Context(), []mailbox.Item{{Location: mailbox.Location{Folder: "INBOX", Key: "7:4"}}}, func(_ mailbox.Item, raw []byte, err error) error {
					if err != nil || string(raw) != "hello" {
						t.Errorf("its bytes are %q, %v", raw, err)
					}
					return nil
				})
				if err != nil {
					t.Errorf("reading its bytes: %v", err)
				}
			})
		}
	}
}

// TestMetadataOfNoMessage checks that the server is at fault if the metadata of
// no message can be read, and that the only message of a folder does not prove
// that.
func TestMetadataOfNoMessage(t *testing.T) {
	t.Parallel()

	for name, bad := range badMetadata() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last atomic.Int64
			last.Store(1000)
			s, fetches := metadata(t, "CONDSTORE", &last, func(imap.UID) string { return bad })
			c := s.config("alice")
			c.Attempts = 2
			r := s.reader(t, c)
			if changes, err := r.Changes(t.Context(), "INBOX", nil, 100, nil); err == nil {
				t.Errorf("%d messages, want an error", len(changes.New))
			}
			if fetches.Load() > 100 {
				t.Errorf("%d FETCH commands for a server that answers none", fetches.Load())
			}
			last.Store(1)
			changes, err := s.reader(t, c).Changes(t.Context(), "INBOX", nil, 100, nil)
			if err != nil || len(changes.New) != 1 || changes.New[0].Unusable == "" {
				t.Errorf("the only message: %+v, %v, want it unusable", changes.New, err)
			}
		})
	}
}

// TestManyWithoutMetadata checks the limit on the messages that a Reader skips.
func TestManyWithoutMetadata(t *testing.T) {
	t.Parallel()

	var last atomic.Int64
	last.Store(4)
	s, _ := metadata(t, "CONDSTORE", &last, func(uid imap.UID) string {
		if uid > 1 {
			return `INTERNALDATE NIL)`
		}
		return ""
	})
	r := s.reader(t, s.config("alice"))
	in := opened{folder: "INBOX", validity: 7}
	for uid := range imap.UID(maxUnusable - 2) {
		r.unusable[in] = append(r.unusable[in], 1000+uid)
	}
	if _, err := r.Changes(t.Context(), "INBOX", nil, 100, nil); !errors.Is(err, errConnection) {
		t.Errorf("over the bound: %v, want an outage", err)
	}
}

// TestSets checks the operations on sets, also at the last UID.
func TestSets(t *testing.T) {
	t.Parallel()

	const end = imap.UID(1<<32 - 1)
	set := imap.UIDSet{{Start: 1, Stop: end}}
	if got := without(set, []imap.UID{1, 5, end}); got.String() != "2:4,6:4294967294" {
		t.Errorf("without 1, 5 and the last: %s", got)
	}
	if got := without(imap.UIDSetNum(5), []imap.UID{5}); len(got) > 0 {
		t.Errorf("without its only UID: %s", got)
	}
	steps := 0
	for count(set) > 1 {
		_, set = halves(set)
		steps++
	}
	if steps > 32 || set[0].Start != end {
		t.Errorf("%d halvings end at %s", steps, set)
	}
	low, high := halves(imap.UIDSetNum(1, 3, 5))
	if low.String() != "1" || high.String() != "3,5" {
		t.Errorf("halves are %s and %s", low, high)
	}
}
