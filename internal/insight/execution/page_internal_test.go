package execution

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

func numbered(n byte) envelope.ActionID { return envelope.ActionID{15: n} }

// TestScansOfDifferentReachAddUp reads two lists with different scan limits, as
// List does: every match is returned once, in order.
func TestScansOfDifferentReachAddUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		lists := [2][]envelope.ActionID{}
		var want []envelope.ActionID
		for n := byte(200); n > 0; n-- {
			if of := random.IntN(8); of < 2 {
				lists[of] = append(lists[of], numbered(n))
				want = append(want, numbered(n))
			}
		}
		most := 1 + random.IntN(9)

		var got []envelope.ActionID
		before, pages := envelope.ActionID(uuid.Max), 0
		for ; pages < 500; pages++ {
			var found []wire.Execution
			var floor envelope.ActionID
			for _, list := range lists {
				from := envelope.ActionID{}
				if below := slices.IndexFunc(list, func(id envelope.ActionID) bool { return compare(id, before) < 0 }); below >= 0 {
					rest, reach := list[below:], 1+random.IntN(6)
					if len(rest) >= reach {
						from = rest[reach-1]
					}
					for _, id := range rest[:min(len(rest), most+1)] {
						if compare(id, from) >= 0 {
							found = append(found, wire.Execution{ID: id})
						}
					}
				}
				floor = later(floor, from)
			}
			p := pageOf(found, floor, most)
			for _, e := range p.Items {
				got = append(got, e.ID)
			}
			if p.Next == nil {
				break
			}
			before = *p.Next
		}

		if !slices.Equal(got, want) {
			t.Fatalf("round %d: pages of %d hold %d of %d", round, most, len(got), len(want))
		}
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	for from, want := range map[envelope.ActionID]envelope.ActionID{
		{15: 1}: {15: 2}, {15: 255}: {14: 1}, {14: 7, 15: 255}: {14: 8},
	} {
		if got := next(from); got != want {
			t.Errorf("next(%s) = %s, want %s", from, got, want)
		}
	}
}
