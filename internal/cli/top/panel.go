package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
)

// column is one of a panel. The first takes the width that the others leave.
type column struct {
	head  string
	cells int
	right bool
}

// panel is a list on the screen.
type panel struct {
	columns []column
	rows    []panelRow
}

type panelRow struct {
	cells []string
	tone  tone
}

// wide is from which width on panels stand side by side.
const wide = 132

// drawTop makes a screen of an overview. height 0 is for as many lines as it
// takes.
func drawTop(o wire.Overview, where string, across, height int, colour bool) []string {
	f := &frame{width: across, colour: colour}
	f.head(o, where)
	space := 0
	if height > 0 {
		space = max(0, height-len(f.lines))
	}
	left, right := []panel{waitingPanel(o), bucketPanel(o)}, []panel{toolPanel(o), sourcePanel(o), pausePanel(o)}
	if across >= wide {
		const gap = 3
		one := drawPanels(left, (across-gap)/2, space, colour)
		two := drawPanels(right, across-gap-(across-gap)/2, space, colour)
		f.beside(one, two, gap)
	} else {
		f.lines = append(f.lines, drawPanels(append(left, right...), across, space, colour).lines...)
	}
	if height > 0 && len(f.lines) > height {
		f.lines = f.lines[:height]
	}
	return f.lines
}

// head says in three lines what matters most.
func (f *frame) head(o wire.Overview, where string) {
	at := o.At.Local().Format("2006-01-02 15:04:05")
	name := "countersign  " + where
	f.add(span{padded(name, max(0, f.width-len(at)-1), false), toneBold}, span{" " + at, toneFaint})

	about := ""
	if o.Estimated {
		about = "about "
	}
	oldest := "none"
	if o.OldestDue > 0 {
		oldest = brief(o.OldestDue)
	}
	f.add(
		span{fmt.Sprintf("due %s%d  scheduled %d  in flight %d  ", about, o.Due, o.Scheduled, o.InFlight), tonePlain},
		span{"oldest due " + oldest, when(o.OldestDue > 60, toneMild)},
		span{fmt.Sprintf("  ended %.1f/s", perSecond(o.Throughput)), toneGood},
	)
	var needs []span
	need := func(n int64, one, more string, t tone) {
		if n == 0 {
			return
		}
		if len(needs) > 0 {
			needs = append(needs, span{"  ", tonePlain})
		}
		needs = append(needs, span{fmt.Sprintf("%d %s", n, word(n, one, more)), t})
	}
	deadLetters := map[string]int64{}
	for _, l := range o.DeadLetters {
		deadLetters[l.Reason] = l.Count
	}
	need(deadLetters["unknown"], "unknown", "unknown", toneAlarm)
	need(o.LeasesOverdue, "lease overdue", "leases overdue", toneAlarm)
	need(int64(len(o.Pauses)), "pause", "pauses", toneMild)
	need(o.Approvals.Waiting, "approval waiting", "approvals waiting", toneMild)
	need(deadLetters["refused"]+deadLetters["exhausted"], "dead letter", "dead letters", toneMild)
	if len(needs) == 0 {
		needs = []span{{"nothing needs a person", toneFaint}}
	}
	f.add(needs...)
}

func word(n int64, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func when(is bool, t tone) tone {
	if is {
		return t
	}
	return tonePlain
}

// perSecond is how many came to an end, by the last minute or what is known of
// it.
func perSecond(t wire.OverviewThroughput) float64 {
	n := int64(0)
	for _, e := range t.Ended {
		if e.Status != "pending" {
			n += e.LastMinute
		}
	}
	return float64(n) / min(60, max(1, t.Covers))
}

func waitingPanel(o wire.Overview) panel {
	p := panel{columns: []column{{"WAITING FOR", 0, false}, {"ACTIONS", 9, true}, {"DUE SINCE", 10, true}, {"NEXT IN", 9, true}}}
	for _, w := range o.Waiting {
		next := "-"
		if w.NextIn != nil {
			next = brief(*w.NextIn)
		}
		p.rows = append(p.rows, panelRow{cells: []string{w.Reason, strconv.FormatInt(w.Actions, 10), age(w.OldestDue), next}})
	}
	return p
}

// age writes how long something has been due; zero is not at all.
func age(seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	return brief(seconds)
}

func bucketPanel(o wire.Overview) panel {
	p := panel{columns: []column{
		{"BUCKET", 0, false}, {"WAITING", 9, true}, {"DUE SINCE", 10, true}, {"TOKENS", 8, true}, {"IN USE", 9, true}, {"OPENS IN", 9, true}, {"", 14, false},
	}}
	for _, b := range o.Buckets {
		tokens, use, opens, state, t := "-", "-", "-", "", tonePlain
		if b.Tokens != nil {
			tokens = strconv.FormatInt(*b.Tokens, 10)
		}
		if b.Concurrency != nil && b.InUse != nil {
			use = fmt.Sprintf("%d/%d", *b.InUse, *b.Concurrency)
		}
		if b.OpensIn > 0 {
			opens, state, t = brief(b.OpensIn), "spent", toneMild
		}
		if b.ClosedBy != nil {
			state = *b.ClosedBy
		}
		if b.Paused {
			state, t = "paused", toneAlarm
		}
		p.rows = append(p.rows, panelRow{[]string{b.Name, strconv.FormatInt(b.Waiting, 10), age(b.OldestDue), tokens, use, opens, "  " + state}, t})
	}
	return p
}

// toolPanel sums the ends of each tool up, the busiest first.
func toolPanel(o wire.Overview) panel {
	reach := "5 MIN"
	if o.Throughput.Covers < 300 {
		reach = brief(max(1, o.Throughput.Covers))
	}
	p := panel{columns: []column{
		{"TOOL, LAST " + reach, 0, false},
		{"SENT", 8, true}, {"RETRY", 7, true}, {"FAILED", 7, true}, {"SKIPPED", 8, true}, {"UNKNOWN", 8, true},
	}}
	counts := make(map[string]map[string]int64)
	for _, e := range o.Throughput.Ended {
		name := e.Tool
		if counts[name] == nil {
			counts[name] = make(map[string]int64)
		}
		status := e.Status
		if status == "conflict" { // it is there
			status = "sent"
		}
		counts[name][status] += e.LastFiveMinutes
		counts[name]["all"] += e.LastFiveMinutes
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b]["all"], counts[a]["all"]), cmp.Compare(a, b))
	})
	for _, name := range names {
		row := panelRow{cells: []string{name}}
		for _, status := range []string{"sent", "pending", "failed", "skipped", "unknown"} {
			row.cells = append(row.cells, strconv.FormatInt(counts[name][status], 10))
		}
		switch {
		case counts[name]["unknown"] > 0:
			row.tone = toneAlarm
		case counts[name]["failed"] > 0:
			row.tone = toneMild
		}
		p.rows = append(p.rows, row)
	}
	return p
}

// sourcePanel has the sources that are not in full use.
func sourcePanel(o wire.Overview) panel {
	p := panel{columns: []column{{"CIRCUIT BREAKER", 0, false}, {"STATE", 11, true}, {"PROBE IN", 9, true}, {"OPENED", 6, true}, {"", 14, false}}}
	for _, b := range o.Breakers {
		if b.State == "closed" {
			continue
		}
		t := toneMild
		if b.State == "open" {
			t = toneAlarm
		}
		probe := brief(max(0, b.OpenUntil.Sub(o.At).Seconds()))
		p.rows = append(p.rows, panelRow{[]string{b.Source, b.State, probe, strconv.Itoa(b.Openings), "  " + b.Cause}, t})
	}
	return p
}

func pausePanel(o wire.Overview) panel {
	p := panel{columns: []column{{"PAUSED", 0, false}, {"FOR", 8, true}, {"  BY", 16, false}, {"  WHY", 26, false}}}
	for _, k := range o.Pauses {
		name := k.Scope
		if k.Subject != "" {
			name += " " + k.Subject
		}
		if k.Kill {
			name += " (kill)"
		}
		p.rows = append(p.rows, panelRow{[]string{name, brief(max(0, o.At.Sub(k.At).Seconds())), "  " + k.By, "  " + k.Reason}, toneMild})
	}
	return p
}

// drawPanels draws panels below each other, in so many lines at most; 0 is for
// as many as it takes. Panels without rows are left out. Where lines are short,
// each in turn gets one more row, and the last line of one that is cut says
// how many are missing.
func drawPanels(panels []panel, across, space int, colour bool) *frame {
	f := &frame{width: across, colour: colour}
	panels = slices.DeleteFunc(panels, func(p panel) bool { return len(p.rows) == 0 })
	shown := share(panels, space)
	for i, p := range panels {
		if shown[i] == 0 {
			continue
		}
		f.add()
		f.row(p, p.heads(), toneBold)
		rows := p.rows
		if shown[i] < len(rows) {
			rows = rows[:shown[i]-1]
		}
		for _, r := range rows {
			f.row(p, r.cells, r.tone)
		}
		if missing := len(p.rows) - len(rows); missing > 0 {
			f.add(span{fmt.Sprintf("  and %d more", missing), toneFaint})
		}
	}
	return f
}

// share says how many rows each panel has in so many lines.
func share(panels []panel, space int) []int {
	shown := make([]int, len(panels))
	if space == 0 {
		for i, p := range panels {
			shown[i] = len(p.rows)
		}
		return shown
	}
	const frame = 2 // a blank line and the heads
	for more := true; more; {
		more = false
		for i, p := range panels {
			cost := 1
			if shown[i] == 0 {
				cost += frame
			}
			if shown[i] < len(p.rows) && cost <= space {
				shown[i]++
				space -= cost
				more = true
			}
		}
	}
	return shown
}

func (p panel) heads() []string {
	heads := make([]string, len(p.columns))
	for i, c := range p.columns {
		heads[i] = c.head
	}
	return heads
}

func (f *frame) row(p panel, cells []string, t tone) {
	rest := f.width
	for _, c := range p.columns[1:] {
		rest -= c.cells
	}
	rest = max(rest, 12)
	var b strings.Builder
	for i, c := range p.columns {
		to := c.cells
		if i == 0 {
			to = rest
		}
		text := cells[i]
		if !c.right {
			// A blank stays between two columns, however long the text.
			text = cut(text, to-1)
		}
		b.WriteString(padded(text, to, c.right))
	}
	f.add(span{strings.TrimRight(b.String(), " "), t})
}

// beside puts two frames side by side.
func (f *frame) beside(left, right *frame, gap int) {
	for i := range max(len(left.lines), len(right.lines)) {
		one, two := "", ""
		if i < len(left.lines) {
			one = left.lines[i]
		}
		if i < len(right.lines) {
			two = right.lines[i]
		}
		blanks := ""
		if two != "" {
			blanks = strings.Repeat(" ", left.width-columns(unstyled(one))+gap)
		}
		f.lines = append(f.lines, one+blanks+two)
	}
}

// unstyled is a line without the sequences that add put in; nothing else can
// have brought any.
func unstyled(text string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "m")
	}
}
