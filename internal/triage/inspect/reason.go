package inspect

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// maxReasons bounds the rules that a sentence names.
const maxReasons = 3

// reason returns the reason of a decision as a sentence, with the codes that it is
// composed of. No text of the mail is in it.
func reason(d decide.Decision, symbols []wire.TriageSignal) *wire.TriageReason {
	r := &wire.TriageReason{Codes: []string{"bucket:" + string(d.Bucket)}}
	var clauses []string
	add := func(code, clause string) {
		if clause != "" {
			r.Codes, clauses = append(r.Codes, code), append(clauses, clause)
		}
	}
	if d.Bucket.NeedsOwner() {
		add("act:"+string(d.Act), actClauses()[d.Act])
	}
	for _, s := range strongest(symbols, d.Bucket) {
		add(s.Name, symbolClauses()[s.Name])
	}
	if len(clauses) == 0 {
		add("act:"+string(d.Act), actClauses()[d.Act])
	}
	r.Text = bucketClauses()[d.Bucket]
	if len(clauses) > 0 {
		r.Text += ", because " + join(clauses)
	}
	clauses = nil
	for _, veto := range d.Vetoes {
		add("veto:"+veto, decide.VetoReason(veto))
	}
	if len(clauses) > 0 {
		r.Text += "; it stays where it is, because " + join(clauses[:min(len(clauses), maxReasons)])
	}
	if d.Question {
		r.Codes = append(r.Codes, "question")
		r.Text += "; its owner is asked, because the models are unsure"
	}
	r.Text += "."
	return r
}

// strongest returns the symbols that weigh most for a bucket: those of risk and
// injection in any, those of need where the owner is needed, and the others where
// not.
func strongest(symbols []wire.TriageSignal, bucket decide.Bucket) []wire.TriageSignal {
	rank := func(s wire.TriageSignal) int {
		switch signal.Axis(s.Axis) {
		case signal.Risk, signal.Inject:
			if s.Weight >= 3 {
				return 2
			}
		case signal.Need:
			if bucket.NeedsOwner() && s.Weight > 0 {
				return 1
			}
		case signal.Bulk, signal.Kind:
			if !bucket.NeedsOwner() {
				return 1
			}
		}
		return 0
	}
	found := slices.DeleteFunc(slices.Clone(symbols), func(s wire.TriageSignal) bool { return rank(s) == 0 || symbolClauses()[s.Name] == "" })
	slices.SortStableFunc(found, func(a, b wire.TriageSignal) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name))
	})
	found = slices.CompactFunc(found, func(a, b wire.TriageSignal) bool { return a.Name == b.Name })
	return found[:min(len(found), maxReasons)]
}

// join joins clauses as a sentence does.
func join(clauses []string) string {
	last := len(clauses) - 1
	if last < 1 {
		return strings.Join(clauses, "")
	}
	return strings.Join(clauses[:last], ", ") + " and " + clauses[last]
}

func bucketClauses() map[decide.Bucket]string {
	return map[decide.Bucket]string{
		decide.Urgent: "It needs its owner soon", decide.Actionable: "It waits for its owner",
		decide.Informational: "It informs, and needs nothing", decide.Archived: "It can be put away",
	}
}

func actClauses() map[classify.Act]string {
	return map[classify.Act]string{
		classify.Request: "it asks for something", classify.Commit: "it promises something", classify.Deliver: "it brings something",
		classify.Propose: "it suggests something", classify.Meet: "it is about a meeting", classify.Amend: "it changes something agreed",
		classify.FYI: "it asks for nothing",
	}
}

// symbolClauses has a clause for every symbol.
func symbolClauses() map[string]string {
	clauses := riskClauses()
	maps.Copy(clauses, otherClauses())
	return clauses
}

func riskClauses() map[string]string {
	return map[string]string{
		signal.DMARCFailReject:       "its sender is not proven, whose domain asks to reject such mail",
		signal.DMARCFailQuarantine:   "its sender is not proven, whose domain asks to set such mail apart",
		signal.DMARCFailNone:         "its sender is not proven",
		signal.SPFFail:               "its host may not send for the domain",
		signal.DKIMFail:              "a signature does not fit it",
		signal.AuthenticationPass:    "its sender is proven",
		signal.ARCPass:               "the way that it took is proven",
		signal.OwnDomainForged:       "it claims to be of the owner's organisation, without proof",
		signal.LookalikeDomain:       "a domain in it looks like a known one",
		signal.DisplayIsOtherAddress: "its sender's name is the address of somebody else",
		signal.DisplayIsContact:      "its sender has the name of a contact, and another address",
		signal.DisplayIsBrand:        "its sender has the name of a brand, and another address",
		signal.RoleFromFreemail:      "its sender claims an office, from a public mail provider",
		signal.BrandClaim:            "it speaks for a brand, and is not the brand's",
		signal.OfficeClaim:           "it speaks for the owner's organisation, and leads elsewhere",
		signal.LureDomain:            "a domain in it is made of words such as secure and verify",
		signal.SenderSuspiciousTLD:   "its sender's top-level domain is mostly abused",
		signal.ReplyToOtherDomain:    "answers to it go to another domain",
		signal.ReplyToSpoof:          "its sender claims to be known, and answers go elsewhere",
		signal.ReplyToOtherFreemail:  "answers to it go to another address of a public mail provider",
		signal.MultipleFrom:          "it has several senders",
		signal.MissingFrom:           "it has no sender",
		signal.FirstContact:          "its owner never had mail with the sender",
		signal.LinkTextMismatch:      "a link shows another domain than it opens",
		signal.URLHomograph:          "a link mixes scripts within a word",
		signal.URLZeroWidth:          "a link has invisible characters",
		signal.URLRTL:                "a link turns the direction of reading",
		signal.URLNumericIP:          "a link goes to an IP address",
		signal.URLUserinfo:           "a link has a user name before its host",
		signal.URLSuspiciousTLD:      "a link goes to a top-level domain that is mostly abused",
		signal.URLShortener:          "a link goes through a shortener",
		signal.LinkForeign:           "it asks for credentials or money, and a link leads elsewhere",
		signal.AttachDoubleExt:       "an attachment is a program with the name of a document",
		signal.AttachBadExt:          "an attachment is a program",
		signal.AttachEncrypted:       "an attachment is an encrypted archive",
		signal.AttachHTML:            "an attachment is a web page",
		signal.TextLowContrast:       "text in it is hidden by its colour",
		signal.ZeroFont:              "text in it is hidden by its size",
		signal.ManyInvisible:         "it has many invisible characters",
		signal.CredentialAsk:         "it asks to log in or for a password",
		signal.PaymentAsk:            "it asks for money",
		signal.BankChange:            "it announces other bank details",
		signal.GiftCardAsk:           "it asks for gift cards",
		signal.AdvanceFee:            "it promises a prize or an inheritance",
		signal.Extortion:             "it threatens",
		signal.Secrecy:               "it asks to keep it from others",
		signal.UrgencyWords:          "it sets a short time limit",
		signal.FirstContactLure:      "a stranger presses for credentials or money",
		signal.ModelPhishing:         "the models find phishing probable",
	}
}

func otherClauses() map[string]string {
	return map[string]string{
		signal.ListID:                 "it comes over a list",
		signal.ListUnsubscribe:        "its header has a way to unsubscribe",
		signal.OneClick:               "its header has a way to unsubscribe with one click",
		signal.PrecedenceBulk:         "its header marks it as bulk",
		signal.AutoSubmitted:          "a machine sent it",
		signal.NoReplySender:          "its sender takes no answers",
		signal.UnsubscribeText:        "it explains how to unsubscribe",
		signal.TrackingPixel:          "it tracks its reader",
		signal.ManyLinks:              "it has many links",
		signal.ToMeAlone:              "its owner is the only recipient",
		signal.CcOnly:                 "its owner has a copy",
		signal.ReplyToMine:            "it answers a message of its owner",
		signal.QuestionToMe:           "it has a question",
		signal.DeadlineDate:           "it names a time limit",
		signal.ICSRequest:             "it has an invitation to answer",
		signal.VIP:                    "its sender is on the owner's list",
		signal.KnownCorrespondent:     "its owner wrote to the sender before",
		signal.InstructionToAssistant: "it gives orders to an assistant",
		signal.InstructionHidden:      "hidden text gives orders to an assistant",
		signal.InstructionHint:        "a phrase may be an order to an assistant",
		signal.ForgedDelimiter:        "it has the delimiters of a model's prompt",
		signal.TagCharacters:          "it has invisible tag characters",
		signal.BidiInText:             "it turns the direction of reading",
		signal.LongEncodedBlock:       "it has a long encoded block",
		signal.Receipt:                "it is a receipt",
		signal.OneTimeCode:            "it has a one-time code",
		signal.Shipping:               "it reports on a delivery",
		signal.SecurityAlert:          "it reports on the security of an account",
		signal.Calendar:               "it has a calendar entry",
		signal.Social:                 "it is of a social network",
		signal.Newsletter:             "it is a newsletter",
	}
}
