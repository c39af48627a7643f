package signal

import "sync"

// The names of the symbols; Rules returns their meanings.
const (
	// Risk: authentication.
	DMARCFailReject     = "DMARC_FAIL_REJECT"
	DMARCFailQuarantine = "DMARC_FAIL_QUARANTINE"
	DMARCFailNone       = "DMARC_FAIL_NONE"
	SPFFail             = "SPF_FAIL"
	DKIMFail            = "DKIM_FAIL"
	AuthenticationPass  = "AUTH_PASS"
	ARCPass             = "ARC_PASS"
	// Risk: names and addresses.
	OwnDomainForged       = "OWN_DOMAIN_FORGED"
	LookalikeDomain       = "LOOKALIKE_DOMAIN"
	DisplayIsOtherAddress = "DISPLAY_IS_OTHER_ADDRESS"
	DisplayIsContact      = "DISPLAY_IS_CONTACT"
	DisplayIsBrand        = "DISPLAY_IS_BRAND"
	RoleFromFreemail      = "ROLE_FROM_FREEMAIL"
	BrandClaim            = "BRAND_CLAIM"
	OfficeClaim           = "OFFICE_CLAIM"
	LureDomain            = "LURE_DOMAIN"
	SenderSuspiciousTLD   = "SENDER_SUSPICIOUS_TLD"
	ReplyToOtherDomain    = "REPLYTO_OTHER_DOMAIN"
	ReplyToSpoof          = "REPLYTO_SPOOF"
	ReplyToOtherFreemail  = "REPLYTO_OTHER_FREEMAIL"
	MultipleFrom          = "MULTIPLE_FROM"
	MissingFrom           = "MISSING_FROM"
	FirstContact          = "FIRST_CONTACT"
	// Risk: links.
	LinkTextMismatch = "LINK_TEXT_MISMATCH"
	URLHomograph     = "URL_HOMOGRAPH"
	URLZeroWidth     = "URL_ZERO_WIDTH"
	URLRTL           = "URL_RTL"
	URLNumericIP     = "URL_NUMERIC_IP"
	URLUserinfo      = "URL_USERINFO"
	URLSuspiciousTLD = "URL_SUSPICIOUS_TLD"
	URLShortener     = "URL_SHORTENER"
	LinkForeign      = "LINK_FOREIGN"
	// Risk: attachments and hidden text.
	AttachDoubleExt = "ATTACH_DOUBLE_EXT"
	AttachBadExt    = "ATTACH_BAD_EXT"
	AttachEncrypted = "ATTACH_ENCRYPTED"
	AttachHTML      = "ATTACH_HTML"
	TextLowContrast = "TEXT_LOW_CONTRAST"
	ZeroFont        = "ZERO_FONT"
	ManyInvisible   = "MANY_INVISIBLE"
	// Risk: words.
	CredentialAsk    = "CREDENTIAL_ASK"
	PaymentAsk       = "PAYMENT_ASK"
	BankChange       = "BANK_CHANGE"
	GiftCardAsk      = "GIFT_CARD_ASK"
	AdvanceFee       = "ADVANCE_FEE"
	Extortion        = "EXTORTION"
	Secrecy          = "SECRECY"
	UrgencyWords     = "URGENCY_WORDS"
	FirstContactLure = "FIRST_CONTACT_LURE"
	ModelPhishing    = "MODEL_PHISHING"
	// Bulk.
	ListID          = "LIST_ID"
	ListUnsubscribe = "LIST_UNSUBSCRIBE"
	OneClick        = "ONE_CLICK"
	PrecedenceBulk  = "PRECEDENCE_BULK"
	AutoSubmitted   = "AUTO_SUBMITTED"
	NoReplySender   = "NO_REPLY_SENDER"
	UnsubscribeText = "UNSUBSCRIBE_TEXT"
	TrackingPixel   = "TRACKING_PIXEL"
	ManyLinks       = "MANY_LINKS"
	// Need.
	ToMeAlone          = "TO_ME_ALONE"
	CcOnly             = "CC_ONLY"
	ReplyToMine        = "REPLY_TO_MINE"
	QuestionToMe       = "QUESTION_TO_ME"
	DeadlineDate       = "DEADLINE_DATE"
	ICSRequest         = "ICS_REQUEST"
	VIP                = "VIP"
	KnownCorrespondent = "KNOWN_CORRESPONDENT"
	// Injection.
	InstructionToAssistant = "INSTRUCTION_TO_ASSISTANT"
	InstructionHidden      = "INSTRUCTION_HIDDEN"
	InstructionHint        = "INSTRUCTION_HINT"
	ForgedDelimiter        = "FORGED_DELIMITER"
	TagCharacters          = "TAG_CHARACTERS"
	BidiInText             = "BIDI_IN_TEXT"
	LongEncodedBlock       = "LONG_ENCODED_BLOCK"
	// Kinds.
	Receipt       = "RECEIPT"
	OneTimeCode   = "ONE_TIME_CODE"
	Shipping      = "SHIPPING"
	SecurityAlert = "SECURITY_ALERT"
	Calendar      = "CALENDAR"
	Social        = "SOCIAL"
	Newsletter    = "NEWSLETTER"
)

// Rule is the definition of a symbol.
type Rule struct {
	Name   string
	Axis   Axis
	Weight float64
	// Identity reports whether the symbol is about the claimed identity of the
	// sender.
	Identity bool
	Meaning  string
}

// Rules returns all symbols. It is the only definition of the weights;
// docs/reference/triage.md has the same table.
func Rules() []Rule {
	return []Rule{
		{DMARCFailReject, Risk, 2, true, "DMARC failed, and the domain of From asks receivers to reject"},
		{DMARCFailQuarantine, Risk, 1.5, true, "DMARC failed, and the domain of From asks for quarantine"},
		{DMARCFailNone, Risk, 0.1, false, "DMARC failed, and the domain of From asks for nothing"},
		{SPFFail, Risk, 1, false, "the sending host may not send for the domain"},
		{DKIMFail, Risk, 1, false, "a signature does not fit the message"},
		{AuthenticationPass, Risk, -0.5, false, "DMARC passed, with a domain aligned with From; takes no flag away"},
		{ARCPass, Risk, -1, false, "the trusted host vouches for the chain of intermediaries; takes no flag away"},
		{OwnDomainForged, Risk, 3, true, "From is of the owner's organisation, and authentication failed"},
		{LookalikeDomain, Risk, 5, true, "a domain of the sender or of a link looks like that of a contact, the owner or a brand"},
		{DisplayIsOtherAddress, Risk, 4, true, "the display name is an address of another domain"},
		{DisplayIsContact, Risk, 5, true, "the display name is that of a contact, the address is of a foreign domain"},
		{DisplayIsBrand, Risk, 5, true, "the display name is that of a brand, the address is not the brand's"},
		{RoleFromFreemail, Risk, 3, true, "the display name is an office (support, bank, director), the address is of a public mail provider"},
		{BrandClaim, Risk, 4, true, "the text speaks for a brand (its support team, your account there), the sender is not of the brand"},
		{OfficeClaim, Risk, 3, true, "the text speaks for the reader's own organisation (its IT, its payroll) and leads elsewhere"},
		{LureDomain, Risk, 3, true, "a domain of the sender or of a link is put together from words such as secure, verify, account"},
		{SenderSuspiciousTLD, Risk, 1, false, "the sender is of a top-level domain that is mostly abused"},
		{ReplyToOtherDomain, Risk, 1, true, "answers go to another domain, in mail from person to person"},
		{ReplyToSpoof, Risk, 6, true, "From claims the owner's domain or a contact, answers go elsewhere"},
		{ReplyToOtherFreemail, Risk, 3, true, "answers go to another address of a public mail provider"},
		{MultipleFrom, Risk, 8, true, "there are several From fields"},
		{MissingFrom, Risk, 2, false, "no From header"},
		{FirstContact, Risk, 0.5, false, "the owner never had mail with the sender"},
		{LinkTextMismatch, Risk, 4, true, "the text of a link shows another registrable domain than its target"},
		{URLHomograph, Risk, 5, true, "a host mixes scripts within a word"},
		{URLZeroWidth, Risk, 7, false, "a link has invisible characters"},
		{URLRTL, Risk, 6, false, "a link has characters that turn the direction of reading"},
		{URLNumericIP, Risk, 1.5, false, "a link goes to an IP address"},
		{URLUserinfo, Risk, 2, false, "a link has a user name before its host"},
		{URLSuspiciousTLD, Risk, 1, false, "a link goes to a top-level domain that is mostly abused"},
		{URLShortener, Risk, 0.5, false, "a link goes through a public shortener"},
		{LinkForeign, Risk, 1, false, "credentials or payment are asked for, and a link goes to a domain that is not the sender's"},
		{AttachDoubleExt, Risk, 3, false, "an attachment's name has a document's extension before a program's"},
		{AttachBadExt, Risk, 2, false, "an attachment is a program or a script"},
		{AttachEncrypted, Risk, 2, false, "an attachment is an encrypted archive"},
		{AttachHTML, Risk, 3, false, "an attachment is a web page"},
		{TextLowContrast, Risk, 4, false, "much text, or text with instructions, is hidden by its colour; not in known bulk mail"},
		{ZeroFont, Risk, 1, false, "text is hidden by its size; not in known bulk mail"},
		{ManyInvisible, Risk, 1, false, "there are many invisible characters; not in known bulk mail"},
		{CredentialAsk, Risk, 1.5, false, "asks to log in, verify an account, or for a password or code"},
		{PaymentAsk, Risk, 1.5, false, "asks to pay or to transfer money"},
		{BankChange, Risk, 3, false, "announces other bank details"},
		{GiftCardAsk, Risk, 4.5, false, "asks to buy gift cards"},
		{AdvanceFee, Risk, 3, false, "promises a prize, an inheritance or a fund"},
		{Extortion, Risk, 5, false, "threatens to publish something unless it is paid for"},
		{Secrecy, Risk, 1, false, "asks to keep a request from others, or not to call"},
		{UrgencyWords, Risk, 0.5, false, "sets a short time limit or threatens a loss"},
		{FirstContactLure, Risk, 3, false, "first contact, urgency or secrecy, and credentials or payment asked for, together"},
		{ModelPhishing, Risk, 5.5, true, "the embedded models find phishing more probable than not"},
		{ListID, Bulk, 2, false, "List-Id"},
		{ListUnsubscribe, Bulk, 2, false, "List-Unsubscribe"},
		{OneClick, Bulk, 1, false, "List-Unsubscribe has an https address and List-Unsubscribe-Post is complete (RFC 8058)"},
		{PrecedenceBulk, Bulk, 2, false, "Precedence is bulk, list or junk"},
		{AutoSubmitted, Bulk, 2, false, "Auto-Submitted is not no"},
		{NoReplySender, Bulk, 1, false, "the sender does not take answers"},
		{UnsubscribeText, Bulk, 1, false, "the text explains how to unsubscribe"},
		{TrackingPixel, Bulk, 0.5, false, "there is a tracking pixel"},
		{ManyLinks, Bulk, 0.5, false, "there are ten links or more"},
		{ToMeAlone, Need, 1, false, "the owner is the only recipient"},
		{CcOnly, Need, -1, false, "the owner is in Cc and not in To"},
		{ReplyToMine, Need, 3, false, "answers a message of the owner"},
		{QuestionToMe, Need, 1, false, "asks a question"},
		{DeadlineDate, Need, 1.5, false, "names a time limit"},
		{ICSRequest, Need, 2, false, "has an invitation to answer"},
		{VIP, Need, 0, false, "the sender is on the owner's list; orders, never chooses a bucket"},
		{KnownCorrespondent, Need, 0, false, "the owner wrote to the sender; orders, never chooses a bucket"},
		{InstructionToAssistant, Inject, 3, false, "visible text gives orders to an assistant"},
		{InstructionHidden, Inject, 6, false, "hidden or invisible text gives orders to an assistant"},
		{InstructionHint, Inject, 1.5, false, "one phrase that may be an order to an assistant; two are INSTRUCTION_TO_ASSISTANT"},
		{ForgedDelimiter, Inject, 6, false, "has the delimiters or role tokens of model prompts"},
		{TagCharacters, Inject, 6, false, "has characters of the Unicode tag block"},
		{BidiInText, Inject, 3, false, "has characters that override the direction of reading"},
		{LongEncodedBlock, Inject, 1, false, "a short mail has a long block of base64 or hexadecimal digits"},
		{Receipt, Kind, 0, false, "an order, an invoice or a payment that happened"},
		{OneTimeCode, Kind, 0, false, "has a one-time code, in Result.Code"},
		{Shipping, Kind, 0, false, "reports on a delivery"},
		{SecurityAlert, Kind, 0, false, "reports on the security of an account, from an aligned domain; forbids automatic moves"},
		{Calendar, Kind, 0, false, "has an iCalendar part"},
		{Social, Kind, 0, false, "from a social network"},
		{Newsletter, Kind, 0, false, "a bulk mail that can be unsubscribed from, and is neither receipt nor code"},
	}
}

var ruleByName = sync.OnceValue(func() map[string]Rule {
	rules := make(map[string]Rule)
	for _, r := range Rules() {
		rules[r.Name] = r
	}
	return rules
})
