package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

// refusedError says that proposals of a batch were not accepted. Why has been
// shown.
type refusedError struct{ refused, all int }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%d of %d proposals were refused; correct them and submit the whole again, which is safe", e.refused, e.all)
}

// showOutcome shows what became of actions and says how to go on. The error
// is errEnvelope if one ended without its effect.
func (a *app) showOutcome(actions []client.Action, waited time.Duration) error {
	var failed error
	waiting, running := 0, 0
	for _, act := range actions {
		if a.json {
			if err := a.document(act); err != nil {
				return err
			}
		}
		switch {
		case ended(act.Phase):
			failed = errEnvelope
		case act.Phase == envelope.PhasePending:
			waiting++
		case act.Phase != envelope.PhaseCompleted:
			running++
		}
	}
	if a.json {
		return failed
	}
	if err := actionTable(a.sys.Out, actions); err != nil {
		return err
	}
	for _, act := range actions {
		a.explain(act)
	}
	switch {
	case waiting > 0 && len(actions) == 1 && voted(actions[0]) != "":
		a.note("%s; somebody else must agree as well", voted(actions[0]))
	case waiting > 0 && len(actions) == 1:
		a.note("A person must decide: countersign approve %s", actions[0].Envelope.ActionID)
	case waiting > 0:
		a.note("%d wait for a person: countersign list --approval required", waiting)
	case running == 1 && len(actions) == 1 && waited == 0:
		a.note("See what becomes of it: countersign get %s --wait", actions[0].Envelope.ActionID)
	case running > 0:
		a.note("%d have not ended yet: countersign watch", running)
	}
	return failed
}

// voted says how many agree to an action, where some do and more must.
func voted(act client.Action) string {
	d := act.Decision
	if d == nil || d.Needed < 2 || d.Given == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d people agree", d.Given, d.Needed)
}

// explain says why an action ended without its effect.
func (a *app) explain(act client.Action) {
	e := act.Envelope
	switch {
	case !ended(act.Phase) && e.Result.Status != envelope.StatusUnknown:
		return
	case act.Policy.Mode == envelope.ModeDeny:
		a.note("%s: policy denies it (%s)", e.ActionID, line(because(act.Policy)))
	case act.Phase == envelope.PhaseDenied && act.Decision != nil:
		a.note("%s: denied by %s%s", e.ActionID, line(act.Decision.By), noted(act.Decision.Note))
	case act.Phase == envelope.PhaseExpired:
		a.note("%s: nobody decided in time; propose it again", e.ActionID)
	case e.Result.Error != nil:
		a.note("%s: %s: %s", e.ActionID, line(e.Result.Error.Code), line(e.Result.Error.Message))
		if answer := compact(e.Result.Output); answer != "" {
			a.note("It answered %s", line(answer))
		}
	}
}

func noted(note string) string {
	if note == "" {
		return ""
	}
	return ": " + line(note)
}

// because names the source of a decision, and what the layers say that want
// it so.
func because(v client.Verdict) string {
	why := []string{v.Source}
	for _, step := range v.Trace {
		switch {
		case step.Said != string(v.Mode):
		case step.Key != "" && step.Detail != "":
			why = append(why, "rule "+step.Key+": "+step.Detail)
		case step.Key != "":
			why = append(why, "rule "+step.Key)
		case step.Detail != "":
			why = append(why, step.Detail)
		}
	}
	return strings.Join(why, ", ")
}

// refusal says in one line why a proposal of a batch was not accepted.
func refusal(p *client.Problem) string {
	if len(p.Errors) == 0 {
		return p.Error()
	}
	reasons := make([]string, len(p.Errors))
	for i, f := range p.Errors {
		at := strings.TrimPrefix(f.Pointer, "/items/")
		_, at, _ = strings.Cut(at, "/") // the number of the proposal in its lot
		reasons[i] = strings.TrimSpace(at + " " + f.Message)
	}
	return strings.Join(reasons, "; ")
}

// showBatch shows what became of the proposals of a batch: all of them to
// scripts, those that were not accepted to people.
func (a *app) showBatch(items []client.BatchItem) error {
	counts := map[string]int{}
	var rows [][]string
	for _, it := range items {
		if a.json {
			if err := a.document(it); err != nil {
				return err
			}
		}
		counts[it.Result]++
		id, why := "", ""
		if it.ActionID != nil {
			id = it.ActionID.String()
		}
		if it.Problem != nil {
			why = refusal(it.Problem)
		}
		if len(items) <= 20 || it.Problem != nil {
			rows = append(rows, []string{fmt.Sprint(it.Index + 1), it.Result, string(it.Phase), id, why})
		}
	}
	if a.json {
		return nil
	}
	if len(rows) > 0 {
		if err := table(a.sys.Out, []string{"NO.", "RESULT", "PHASE", "ID", "WHY"}, rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.sys.Out, "%d accepted, %d known already, %d denied, %d refused\n",
		counts["accepted"], counts["known"], counts["denied"], counts["refused"])
	return err
}
