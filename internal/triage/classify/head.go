package classify

import "slices"

// Head is one of the models: a question with its possible answers.
type Head string

// The heads.
const (
	HeadAct       Head = "act"
	HeadCategory  Head = "category"
	HeadPriority  Head = "priority"
	HeadAttention Head = "attention"
	HeadUnwanted  Head = "unwanted"
	HeadPhishing  Head = "phishing"
	HeadRequest   Head = "request"
)

// The answers of yes-or-no heads.
const (
	No  = "no"
	Yes = "yes"
)

// heads returns all heads in the order of the file.
func heads() []Head {
	return []Head{HeadAct, HeadCategory, HeadPriority, HeadAttention, HeadUnwanted, HeadPhishing, HeadRequest}
}

// Classes returns the answers of a head in the order of the file.
func (h Head) Classes() []string {
	switch h {
	case HeadAct:
		return []string{string(Request), string(Commit), string(Deliver), string(Propose), string(Meet), string(Amend), string(FYI)}
	case HeadCategory:
		return []string{
			string(Primary), string(Newsletters), string(Notifications), string(Promotions), string(Receipts), string(Social),
		}
	case HeadPriority:
		return []string{string(Urgent), string(NeedsResponse), string(ForInfo), string(Promotional), string(Personal)}
	case HeadAttention, HeadUnwanted, HeadPhishing, HeadRequest:
		return []string{No, Yes}
	}
	return nil
}

// index returns the index of an answer among the classes, or -1.
func (h Head) index(label string) int { return slices.Index(h.Classes(), label) }

// outputs returns the number of a head's outputs: one for a yes-or-no question.
func (h Head) outputs() int {
	if n := len(h.Classes()); n > 2 {
		return n
	}
	return 1
}

// asks reports whether a head uses the requests in the sentences. The heads of
// unwanted mail, whose training set is large, do not.
func (h Head) asks() bool { return h == HeadAct || h == HeadPriority || h == HeadAttention }

// maxOutputs is the largest number of outputs of any head.
const maxOutputs = 7
