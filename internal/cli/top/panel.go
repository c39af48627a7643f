package top

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

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
	height = cmp.Or(height, math.MaxInt)
	lines := head(o, where, across)
	space := max(0, height-len(lines))
	left, right := []panel{waitingPanel(o), bucketPanel(o)}, []panel{toolPanel(o), sourcePanel(o), pausePanel(o)}
	if across >= wide {
		const gap = 3
		half := (across - gap) / 2
		lines = append(lines, beside(drawPanels(left, half, space), drawPanels(right, across-gap-half, space), half+gap)...)
	} else {
		lines = append(lines, drawPanels(append(left, right...), across, space)...)
	}
	text := make([]string, min(len(lines), height))
	for i := range text {
		text[i] = lines[i].text(across, colour)
	}
	return text
}

// head returns the summary, in three lines.
func head(o wire.Overview, where string, across int) []line {
	at := o.At.Local().Format(time.DateTime)
	about, oldest, late := "", "none", tonePlain
	if o.Estimated {
		about = "about "
	}
	if o.OldestDue > 0 {
		oldest = brief(o.OldestDue)
	}
	if o.OldestDue > 60 {
		late = toneMild
	}
	deadLetters := map[string]int64{}
	for _, l := range o.DeadLetters {
		deadLetters[l.Reason] = l.Count
	}
	var needs line
	for _, need := range []struct {
		count     int64
		one, more string
		tone      tone
	}{
		{deadLetters["unknown"], "unknown", "unknown", toneAlarm},
		{o.LeasesOverdue, "lease overdue", "leases overdue", toneAlarm},
		{int64(len(o.Pauses)), "pause", "pauses", toneMild},
		{o.Approvals.Waiting, "approval waiting", "approvals waiting", toneMild},
		{deadLetters["refused"] + deadLetters["exhausted"], "dead letter", "dead letters", toneMild},
	} {
		switch need.count {
		case 0:
			continue
		case 1:
			need.more = need.one
		}
		if len(needs) > 0 {
			needs = append(needs, span{"  ", tonePlain})
		}
		needs = append(needs, span{fmt.Sprintf("%d %s", need.count, need.more), need.tone})
	}
	if len(needs) == 0 {
		needs = line{{"nothing needs a person", toneFaint}}
	}
	return []line{
		{{padded("countersign  "+where, max(0, across-len(at)-1), false), toneBold}, {" " + at, toneFaint}},
		{
			{fmt.Sprintf("due %s%d  scheduled %d  in flight %d  ", about, o.Due, o.Scheduled, o.InFlight), tonePlain},
			{"oldest due " + oldest, late}, {fmt.Sprintf("  ended %.1f/s", perSecond(o.Throughput)), toneGood},
		},
		needs,
	}
}

// perSecond is the rate of ended actions in the last minute, or in the part of
// it that was observed.
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
		{"BUCKET", 0, false}, {"WAITING", 9, true}, {"DUE SINCE", 10, true}, {"PERMITS", 8, true}, {"IN USE", 9, true}, {"OPENS IN", 9, true}, {"", 14, false},
	}}
	for _, b := range o.Buckets {
		permits, use, opens, state, t := "-", "-", "-", "", tonePlain
		if b.Permits != nil {
			permits = strconv.FormatInt(*b.Permits, 10)
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
		p.rows = append(p.rows, panelRow{[]string{b.Name, strconv.FormatInt(b.Waiting, 10), age(b.OldestDue), permits, use, opens, "  " + state}, t})
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
		p.rows = append(p.rows, panelRow{[]string{name, brief(max(0, o.At.Sub(k.At).Seconds())), "  " + k.By.Brief(), "  " + k.Reason}, toneMild})
	}
	return p
}

// drawPanels draws panels below each other, in at most that many lines. Panels
// without rows are left out. Where lines are short, each in turn gets one more
// row, and the last line of one that is cut counts the missing rows.
func drawPanels(panels []panel, across, space int) (lines []line) {
	panels = slices.DeleteFunc(panels, func(p panel) bool { return len(p.rows) == 0 })
	shown := share(panels, space)
	for i, p := range panels {
		if shown[i] == 0 {
			continue
		}
		heads := panelRow{make([]string, len(p.columns)), toneBold}
		for i, c := range p.columns {
			heads.cells[i] = c.head
		}
		rows := p.rows
		if shown[i] < len(rows) {
			rows = rows[:shown[i]-1]
		}
		lines = append(lines, nil, p.line(heads, across))
		for _, r := range rows {
			lines = append(lines, p.line(r, across))
		}
		if missing := len(p.rows) - len(rows); missing > 0 {
			lines = append(lines, line{{fmt.Sprintf("  and %d more", missing), toneFaint}})
		}
	}
	return lines
}

// share returns the number of rows of each panel within a number of lines.
func share(panels []panel, space int) []int {
	shown := make([]int, len(panels))
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

// line writes a row of a panel. A blank stays between two columns, however long
// the text.
func (p panel) line(r panelRow, across int) line {
	rest := across
	for _, c := range p.columns[1:] {
		rest -= c.cells
	}
	var b strings.Builder
	for i, c := range p.columns {
		if i == 0 {
			c.cells = max(rest, 12)
		}
		text := r.cells[i]
		if !c.right {
			text = cut(text, c.cells-1)
		}
		b.WriteString(padded(text, c.cells, c.right))
	}
	return line{{cut(strings.TrimRight(b.String(), " "), across), r.tone}}
}

// beside puts lines to the right of others, where column at begins.
func beside(left, right []line, at int) []line {
	lines := make([]line, max(len(left), len(right)))
	copy(lines, left)
	for i, l := range right {
		if len(l) > 0 {
			blanks := strings.Repeat(" ", at-lines[i].columns())
			lines[i] = append(append(lines[i], span{blanks, tonePlain}), l...)
		}
	}
	return lines
}
