package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// request is a request of the attacker.
type request struct{ name, method, path, body string }

// attack sends the attacker's requests.
type attack struct {
	base, token     string
	attackers, rate int
	random          *rand.Rand

	mu      sync.Mutex
	sent    map[int]int
	slowest []Slow
	log     []logged
}

// logged is a request that was answered.
type logged struct {
	name string
	span
}

func newAttack(base string, t tenants, cfg Config) *attack {
	random := rand.New(rand.NewPCG(1, 2)) // every run sends the same
	return &attack{base: base, token: t.attacker, attackers: cfg.Attackers, rate: cfg.Rate, random: random, sent: make(map[int]int)}
}

// during returns the names of the requests that were open at some time of a
// span.
func (a *attack) during(s span) map[string]bool {
	names := make(map[string]bool)
	for _, l := range a.log {
		if l.from.Before(s.to) && l.to.After(s.from) {
			names[l.name] = true
		}
	}
	return names
}

// run sends bodies generated requests, with each known one among them, several
// concurrently, and returns when all are answered.
func (a *attack) run(ctx context.Context, bodies int) {
	next := make(chan request)
	tick := time.NewTicker(time.Second / time.Duration(a.rate))
	defer tick.Stop()
	var open sync.WaitGroup
	for range a.attackers {
		open.Go(func() {
			for r := range next {
				began := time.Now()
				status, err := send(ctx, r.method, a.base+r.path, a.token, r.body)
				if err != nil {
					status = 0
				}
				a.mu.Lock()
				a.sent[status]++
				l := logged{r.name, span{began, time.Now()}}
				a.log = append(a.log, l)
				a.slowest = slower(a.slowest, Slow{fmt.Sprintf("%s (%d KB, answered %d)", r.name, len(r.body)>>10, status), l.length()})
				a.mu.Unlock()
			}
		})
	}
	all := known()
	every := max(1, bodies/len(all))
	for i := range max(bodies, every*len(all)) {
		if ctx.Err() != nil {
			break
		}
		if i%every == 0 && i/every < len(all) {
			next <- all[i/every]
		}
		if i < bodies {
			<-tick.C
			next <- generated(a.random)
		}
	}
	close(next)
	open.Wait()
}

// deep returns an object that is nested within itself under a name.
func deep(name string, levels int, inner string) string {
	return strings.Repeat(`{"`+name+`":`, levels) + inner + strings.Repeat("}", levels)
}

// list returns a list of n equal elements.
func list(one string, n int) string { return "[" + strings.Repeat(one+",", n-1) + one + "]" }

func invoke(name, tool, inputs string) request {
	return request{name, http.MethodPost, "/api/v1/tools/" + evil + ":" + tool, `{"external_id":"x","wait":"0s","inputs":` + inputs + `}`}
}

func propose(name, tool, args string) request {
	return request{name, http.MethodPost, "/api/v1/actions", `{"type":"mcp.exec","external_id":"x","tool":{"source":"` + evil + `","name":"` + tool + `"},"args":` + args + `}`}
}

// known are the requests that once took the API down or slowed it, and others
// that are made to.
func known() []request {
	numbers := list("1e999999", 200)
	long := strings.Repeat("ab", 100<<10)
	item := `{"type":"mcp.exec","external_id":"x","tool":{"source":"evil","name":"t3"},"args":` + deep("a", 40, "{}") + `}`
	return []request{
		invoke("a schema that multiplies", bomb, `{"a":{"a":{}}}`),
		propose("a schema that multiplies", bomb, `{"a":{"a":{}}}`),
		invoke("deep arguments, anyOf", "t0", deep("a", 50, "{}")),
		invoke("deep arguments, allOf", "t1", deep("a", 50, `{"b":1}`)),
		invoke("deep arguments, oneOf", "t2", deep("a", 50, "{}")),
		propose("deep arguments, patterns", "t3", deep("a", 50, "{}")),
		propose("deep arguments, not", "t4", deep("a", 50, "{}")),
		invoke("a long text, many patterns", "t5", `{"all":["`+long+`"]}`),
		invoke("many values, a long enum", "t6", `{"all":`+list("2", 50_000)+`}`),
		invoke("many wrong items", "t7", `{"all":`+list(`{"x":1}`, 25_000)+`}`),
		propose("unevaluated at every level", "t8", deep("b", 50, `{"c":1}`)),
		invoke("regular expressions as values", "t10", `{"all":`+list(`"(((a{1000}){10}))"`, 5000)+`}`),
		invoke("numbers", "t11", `{"n":1e300}`),
		{"number bombs for a simulation", http.MethodPost, "/api/v1/policy/simulate", `{"since":"2026-01-02T03:04:05Z","limit":5,"n":` + numbers + `}`},
		{"number bombs for a document", http.MethodPut, "/api/v1/limits?dry_run=true", `{"buckets":` + numbers + `}`},
		{"number bombs for a call", http.MethodPost, "/api/v1/tools/evil:t0", `{"inputs":{"a":` + numbers + `}}`},
		{"number bombs over MCP", http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1e999999,"method":"tools/list"}`},
		{"a call over MCP", http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"evil__t1","arguments":` + deep("a", 40, "{}") + `}}`},
		{"many wrong entries", http.MethodPost, "/api/v1/do-not-contact", `{"entries":` + list(`{"x":{}}`, 500_000) + `}`},
		{"many values", http.MethodPut, "/api/v1/policy?dry_run=true", `{"modes":` + list("[[]]", 500_000) + `}`},
		{"many names", http.MethodPost, "/api/v1/policy/explain", `{"tool":"evil:t7","args":{"a":0` + strings.Repeat(`,"`+strings.Repeat("n", 60)+`":0`, 3000) + `}}`},
		{"a batch of deep arguments", http.MethodPost, "/api/v1/actions/batch", `{"items":` + list(item, 300) + `}`},
		{"a large batch", http.MethodPost, "/api/v1/actions/batch", `{"items":` + list(`{"type":"mcp.exec","external_id":"x","tool":{"name":"t7"},"args":{"all":`+list("1", 5000)+`}}`, 1000) + `}`},
		{"a batch of as many values as fit", http.MethodPost, "/api/v1/actions/batch", `{"items":` + list(`{"type":"mcp.exec","external_id":"x","tool":{"name":"t7"},"args":{"all":`+list("1", 480)+`}}`, 1000) + `}`},
		{"a batch of new proposals with long texts", http.MethodPost, "/api/v1/actions/batch", newProposals(1000, 15<<10)},
		{"references in a workflow", http.MethodPost, "/api/v1/workflows", `{"external_id":"x","dry_run":true,"steps":[{"tool":"evil:t7"},{"tool":"evil:t7","inputs":{"all":` + list(`"$0.a"`, 20_000) + `}}]}`},
		{"brackets", http.MethodPost, "/api/v1/policy/explain", strings.Repeat("[", 200_000)},
	}
}

// newProposals returns a batch of n new proposals, with texts of length bytes.
func newProposals(n, length int) string {
	text := strings.Repeat("ab", length/2)
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, `,{"type":"mcp.exec","external_id":%q,"tool":{"name":"t7"},"args":{"text":%q}}`, uuid.NewString(), text)
	}
	return `{"items":[` + b.String()[1:] + `]}`
}

// generated returns a random request: a body for one of the routes, made of
// hostile parts.
func generated(random *rand.Rand) request {
	tool := fmt.Sprintf("t%d", random.IntN(12))
	if random.IntN(20) == 0 {
		tool = bomb
	}
	v := value(random, 6)
	if random.IntN(3) == 0 {
		v = deep([]string{"a", "b", "all"}[random.IntN(3)], 1+random.IntN(60), v)
	}
	if v[0] != '{' {
		v = `{"all":` + v + `}`
	}
	var r request
	switch random.IntN(8) {
	case 0:
		r = request{"", http.MethodPost, "/api/v1/policy/explain", `{"tool":"evil:` + tool + `","args":` + v + `}`}
	case 1:
		r = request{"", http.MethodPost, "/api/v1/policy/simulate", `{"since":"2026-01-02T03:04:05Z","limit":5,"policy":` + v + `}`}
	case 2:
		r = request{"", http.MethodPut, "/api/v1/limits?dry_run=true", v}
	case 3:
		r = request{"", http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"evil__` + tool + `","arguments":` + v + `}}`}
	case 4:
		r = propose("", tool, v)
	case 5:
		r = request{"", http.MethodPost, "/api/v1/actions/batch", `{"items":` + list(propose("", tool, v).body, 1+random.IntN(20)) + `}`}
	default:
		r = invoke("", tool, v)
	}
	r.name = "generated"
	if random.IntN(10) == 0 {
		r.body = r.body[:random.IntN(len(r.body))]
	}
	return r
}

// value returns a JSON value, or almost one, of at most levels levels.
func value(random *rand.Rand, levels int) string {
	scalars := []string{
		"1", "-0", "1e999999", "1e400", "-1.5e-399", strings.Repeat("9", 1+random.IntN(500)), "null", "true", `""`, `"\u0000"`, `"\ud800"`, "\"\xff\"",
		`"` + strings.Repeat("a", random.IntN(2000)) + `"`, `"(a|b)*c{50}"`, "NaN",
	}
	if levels == 0 {
		return scalars[random.IntN(len(scalars))]
	}
	n := random.IntN(6)
	switch random.IntN(6) {
	case 0:
		return scalars[random.IntN(len(scalars))]
	case 1:
		const longest = 32 << 10
		one := value(random, levels-1)
		return list(one, 1+random.IntN(max(1, min(200, longest/len(one)))))
	case 2:
		return deep("a", 1+random.IntN(20), value(random, levels-1))
	}
	var b strings.Builder
	b.WriteString(`{"x":0`)
	for i := range n {
		fmt.Fprintf(&b, `,%q:%s`, []string{"a", "b", "all", "n", "a", strings.Repeat("k", random.IntN(300))}[i], value(random, levels-1))
	}
	return b.String() + "}"
}
