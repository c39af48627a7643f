package identity_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// everyRole returns the roles, the lowest first.
func everyRole() []identity.Role {
	return []identity.Role{identity.RoleAgent, identity.RoleViewer, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
}

func TestMayGrantRoles(t *testing.T) {
	t.Parallel()
	may := map[identity.Role]string{
		identity.RoleAdmin: "agent viewer operator",
		identity.RoleOwner: "agent viewer operator admin owner",
	}

	for _, by := range everyRole() {
		for _, role := range everyRole() {
			want := strings.Contains(" "+may[by]+" ", " "+string(role)+" ")
			p := identity.Principal{Role: by}
			if got := p.MayGrant(identity.Grant{Role: role}) == nil; got != want {
				t.Errorf("%s makes %s: %t, want %t", by, role, got, want)
			}
			if got := p.MayRevoke(identity.Grant{Role: role}) == nil; got != want {
				t.Errorf("%s revokes %s: %t, want %t", by, role, got, want)
			}
		}
	}
}

func TestGrantsAreLimitedToOwnRights(t *testing.T) {
	t.Parallel()
	self, other := uuid.New(), uuid.New()
	narrow := identity.Principal{
		Role: identity.RoleOwner, Operator: self, Scopes: []identity.Scope{identity.TokensManage, identity.ActionsRead}, Tools: []string{"mail:*", "*:list"}, Session: "own",
	}
	admin := identity.Principal{Role: identity.RoleAdmin, Operator: self}
	one, tool := []identity.Scope{identity.ActionsRead}, []string{"mail:send"}

	for name, row := range map[string]struct {
		by   identity.Principal
		g    identity.Grant
		want bool
	}{
		"less":                         {narrow, identity.Grant{Role: identity.RoleOwner, Scopes: one, Tools: tool}, true},
		"as much":                      {narrow, identity.Grant{Role: identity.RoleOwner, Scopes: narrow.Scopes, Tools: narrow.Tools}, true},
		"all scopes":                   {narrow, identity.Grant{Role: identity.RoleAgent, Tools: tool}, false},
		"another scope":                {narrow, identity.Grant{Role: identity.RoleAgent, Scopes: []identity.Scope{identity.PolicyWrite}, Tools: tool}, false},
		"all tools":                    {narrow, identity.Grant{Role: identity.RoleAgent, Scopes: one}, false},
		"all tools in words":           {narrow, identity.Grant{Role: identity.RoleAgent, Scopes: one, Tools: []string{"*"}}, false},
		"another tool":                 {narrow, identity.Grant{Role: identity.RoleAgent, Scopes: one, Tools: []string{"mail:send", "crm:send"}}, false},
		"a tool of that name anywhere": {narrow, identity.Grant{Role: identity.RoleAgent, Scopes: one, Tools: []string{"crm:list"}}, true},
		"a pattern that is none":       {narrow, identity.Grant{Role: identity.RoleAgent, Scopes: one, Tools: []string{"mail"}}, false},
		"a session":                    {narrow, identity.Grant{Role: identity.RoleAgent, Scopes: one, Tools: tool, Session: "s"}, false},
		"its own session":              {narrow, identity.Grant{Role: identity.RoleAgent, Scopes: one, Tools: tool, Session: "own"}, true},
		"a session by who may loosen":  {admin, identity.Grant{Role: identity.RoleAgent, Session: "s"}, true},
		"oneself":                      {admin, identity.Grant{Role: identity.RoleOperator, Operator: self}, true},
		"another person":               {admin, identity.Grant{Role: identity.RoleOperator, Operator: other}, false},
		"another person's agent":       {admin, identity.Grant{Role: identity.RoleAgent, Operator: other}, true},
		"another person by an owner":   {identity.Principal{Role: identity.RoleOwner}, identity.Grant{Role: identity.RoleAdmin, Operator: other}, true},
	} {
		if err := row.by.MayGrant(row.g); (err == nil) != row.want || err != nil && !errors.Is(err, fault.Denied) {
			t.Errorf("%s: MayGrant = %v, want allowed %t", name, err, row.want)
		}
	}
}

func TestTokenHasAtMostTheRightsOfItsPerson(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)
	viewer := add(t, db, tenant, identity.Operator{Name: "v", RoleSet: identity.RoleViewer})
	gone := add(t, db, tenant, identity.Operator{Name: "d", RoleSet: identity.RoleOwner, Disabled: true})
	none := add(t, db, tenant, identity.Operator{Name: "n"})

	for name, row := range map[string]struct {
		g    identity.Grant
		want error
	}{
		"an agent of a viewer":   {identity.Grant{Role: identity.RoleAgent, Operator: viewer}, nil},
		"a viewer":               {identity.Grant{Role: identity.RoleViewer, Operator: viewer}, nil},
		"more than the person":   {identity.Grant{Role: identity.RoleOperator, Operator: viewer}, fault.Invalid},
		"somebody disabled":      {identity.Grant{Role: identity.RoleAgent, Operator: gone}, fault.Invalid},
		"somebody without role":  {identity.Grant{Role: identity.RoleAgent, Operator: none}, fault.Invalid},
		"nobody":                 {identity.Grant{Role: identity.RoleAgent, Operator: uuid.New()}, fault.NotFound},
		"no scope of those that": {identity.Grant{Role: identity.RoleAgent, Scopes: []identity.Scope{"actions:*"}}, fault.Invalid},
		"an empty list of scope": {identity.Grant{Role: identity.RoleAgent, Scopes: []identity.Scope{}}, fault.Invalid},
		"an empty list of tools": {identity.Grant{Role: identity.RoleAgent, Tools: []string{}}, fault.Invalid},
		"a tool that is none":    {identity.Grant{Role: identity.RoleAgent, Tools: []string{"mail:s*"}}, fault.Invalid},
		"a scope twice":          {identity.Grant{Role: identity.RoleAgent, Scopes: []identity.Scope{identity.ActionsRead, identity.ActionsRead}}, fault.Invalid},
	} {
		row.g.Name = "t"
		err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
			_, err := identity.Issue(t.Context(), tx, tenant, row.g, now())
			return err
		})
		if !errors.Is(err, row.want) {
			t.Errorf("Issue(%s) = %v, want %v", name, err, row.want)
		}
	}
}

// add adds a person.
func add(t *testing.T, db postgres.Begins, tenant envelope.TenantID, o identity.Operator) (id uuid.UUID) {
	t.Helper()
	inTenant(t, db, tenant, func(tx pgx.Tx) (err error) {
		id, err = identity.NewOperator(t.Context(), tx, root(tenant), o, now())
		return err
	})
	return id
}

// rotate rotates a token's secret.
func rotate(t *testing.T, db postgres.Begins, tenant envelope.TenantID, id identity.TokenID, how identity.Rotation, at time.Time) (made identity.Issued, err error) {
	t.Helper()
	return made, postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error {
		made, err = identity.Rotate(t.Context(), tx, tenant, id, how, at)
		return err
	})
}

func TestRotationKeepsTheOldSecretForTheOverlap(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now().Truncate(time.Millisecond)
	tenant := tenantOf(t, db)
	old := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent, Scopes: []identity.Scope{identity.ActionsRead}, Tools: []string{"mail:*"}, TTL: time.Hour}, at)
	id := old.Principal.Token

	made, err := rotate(t, db, tenant, id, identity.Rotation{Overlap: time.Minute}, at)

	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"old": old.Token.Text(), "new": made.Token.Text()} {
		got, err := identity.NewAuthenticator(db).Authenticate(t.Context(), token, at)
		if err != nil {
			t.Fatalf("the %s secret: %v", name, err)
		}
		if diff := cmp.Diff(old.Principal, got); diff != "" {
			t.Errorf("principal by the %s secret (-want +got):\n%s", name, diff)
		}
	}
	if _, err := rotate(t, db, tenant, id, identity.Rotation{Overlap: time.Minute}, at); !errors.Is(err, fault.Conflict) {
		t.Errorf("another rotation within the overlap = %v, want fault.Conflict", err)
	}
	third, err := rotate(t, db, tenant, id, identity.Rotation{}, at)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"first": old.Token.Text(), "second": made.Token.Text()} {
		if _, err := identity.NewAuthenticator(db).Authenticate(t.Context(), token, at); !errors.Is(err, identity.ErrToken) {
			t.Errorf("after a rotation without overlap the %s secret = %v, want ErrToken", name, err)
		}
	}
	if third.ExpiresAt == nil || !third.ExpiresAt.Equal(*old.ExpiresAt) {
		t.Errorf("ExpiresAt = %v, want it as before: %v", third.ExpiresAt, old.ExpiresAt)
	}
}

// TestCacheEndsWithTheSecret checks that the cache expires with a secret, not
// CacheFor later.
func TestCacheEndsWithTheSecret(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant := tenantOf(t, db)
	old := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent}, at)
	brief := issue(t, db, tenant, identity.Grant{Name: "b", Role: identity.RoleAgent, TTL: 4 * time.Second}, at)
	if _, err := rotate(t, db, tenant, old.Principal.Token, identity.Rotation{Overlap: 4 * time.Second}, at); err != nil {
		t.Fatal(err)
	}
	counted := &counting{Begins: db}
	auth := identity.NewAuthenticator(counted)

	for _, token := range []string{old.Token.Text(), brief.Token.Text()} {
		for range 2 {
			if _, err := auth.Authenticate(t.Context(), token, at); err != nil {
				t.Fatal(err)
			}
		}
		before := counted.begun
		_, _ = auth.Authenticate(t.Context(), token, at.Add(5*time.Second)) // the database's clock decides, and has not moved
		if counted.begun != before+1 {
			t.Error("a secret that has ended is taken from the cache")
		}
	}
}

func TestOneOfConcurrentRotationsWins(t *testing.T) {
	t.Parallel()
	db, at := dbtest.DB(t), now()
	tenant := tenantOf(t, db)

	for _, overlap := range []time.Duration{0, time.Hour} {
		old := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent}, at)
		var mu sync.Mutex
		var won []identity.Issued
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				<-start
				made, err := rotate(t, db, tenant, old.Principal.Token, identity.Rotation{Overlap: overlap}, at)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won = append(won, made)
				case !errors.Is(err, fault.Conflict):
					t.Errorf("rotate: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()

		valid := 0
		for _, made := range won {
			if _, err := identity.NewAuthenticator(db).Authenticate(t.Context(), made.Token.Text(), at); err == nil {
				valid++
			}
		}
		// Without an overlap one rotation may follow another and end its secret.
		if valid != 1 || overlap > 0 && len(won) != 1 {
			t.Errorf("of %d rotations that won with an overlap of %s, %d secrets are valid; want one", len(won), overlap, valid)
		}
	}
}

func TestRotateRefuses(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now()
	tenant, other := tenantOf(t, db), tenantOf(t, db)
	past := issue(t, db, tenant, identity.Grant{Name: "x", Role: identity.RoleAgent, TTL: time.Minute}, at.Add(-time.Hour)).Principal.Token
	again := issue(t, db, tenant, identity.Grant{Name: "x", Role: identity.RoleAgent, TTL: time.Minute}, at.Add(-time.Hour)).Principal.Token
	revoked := issue(t, db, tenant, identity.Grant{Name: "x", Role: identity.RoleAgent}, at).Principal.Token
	if err := revoke(t, db, tenant, revoked); err != nil {
		t.Fatal(err)
	}
	live := issue(t, db, tenant, identity.Grant{Name: "x", Role: identity.RoleAgent}, at).Principal.Token

	for name, row := range map[string]struct {
		tenant envelope.TenantID
		id     identity.TokenID
		how    identity.Rotation
		want   error
	}{
		"an expired one":          {tenant, past, identity.Rotation{}, fault.Conflict},
		"an expired one with TTL": {tenant, again, identity.Rotation{TTL: time.Hour}, nil},
		"a revoked one":           {tenant, revoked, identity.Rotation{}, fault.NotFound},
		"another tenant's":        {other, live, identity.Rotation{}, fault.NotFound},
		"a long overlap":          {tenant, live, identity.Rotation{Overlap: identity.MaxOverlap + 1}, fault.Invalid},
		"a negative overlap":      {tenant, live, identity.Rotation{Overlap: -1}, fault.Invalid},
	} {
		if _, err := rotate(t, db, row.tenant, row.id, row.how, at); !errors.Is(err, row.want) {
			t.Errorf("Rotate(%s) = %v, want %v", name, err, row.want)
		}
	}
}

func TestLastOwnerCannotBeRemoved(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)
	trust(t, db, tenant, identity.Provider{Issuer: "https://login.acme.com"})
	person := identity.Operator{Name: "o", RoleSet: identity.RoleOwner, Issuer: "https://login.acme.com", Subject: "o"}
	person.ID = add(t, db, tenant, person)
	token := issue(t, db, tenant, identity.Grant{Name: "o", Role: identity.RoleOwner}, now()).Principal.Token
	issue(t, db, tenant, identity.Grant{Name: "reader", Role: identity.RoleOwner, Scopes: []identity.Scope{identity.ActionsRead}}, now()) // none that counts
	put := func(o identity.Operator) error {
		return postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error { return identity.PutOperator(t.Context(), tx, root(tenant), o) })
	}

	if err := revoke(t, db, tenant, token); err != nil {
		t.Errorf("revoking one of two owners = %v, want it done", err)
	}
	disabled, lesser, elsewhere := person, person, person
	disabled.Disabled, lesser.RoleSet = true, identity.RoleAdmin
	elsewhere.Issuer, elsewhere.Subject = "", ""
	for name, o := range map[string]identity.Operator{"disabling": disabled, "demoting": lesser, "locking out": elsewhere} {
		if err := put(o); !errors.Is(err, fault.Conflict) {
			t.Errorf("%s the last owner = %v, want fault.Conflict", name, err)
		}
	}
	err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error { return identity.DeleteProvider(t.Context(), tx, tenant, "p") })
	if !errors.Is(err, fault.Conflict) {
		t.Errorf("deleting where the last owner logs in = %v, want fault.Conflict", err)
	}
	issue(t, db, tenant, identity.Grant{Name: "o", Role: identity.RoleOwner}, now())
	if err := put(disabled); err != nil {
		t.Errorf("disabling one of two owners = %v, want it done", err)
	}
}

func TestOwnersCannotRemoveEachOther(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)

	for range 5 {
		tenant := tenantOf(t, db)
		one := issue(t, db, tenant, identity.Grant{Name: "one", Role: identity.RoleOwner}, now()).Principal.Token
		two := issue(t, db, tenant, identity.Grant{Name: "two", Role: identity.RoleOwner}, now()).Principal.Token
		var wg sync.WaitGroup
		var errs [2]error
		for i, id := range []identity.TokenID{one, two} {
			wg.Go(func() { errs[i] = revoke(t, db, tenant, id) })
		}
		wg.Wait()

		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs[:]...), fault.Conflict) {
			t.Errorf("two owners revoked at once: %v; want one to stay", errs)
		}
	}
}

func TestAdministratorsCannotGrantHigherRoles(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant := tenantOf(t, db)
	own := identity.Operator{Name: "adm", RoleSet: identity.RoleAdmin, Issuer: "https://i", Subject: "adm"}
	own.ID = add(t, db, tenant, own)
	owner := identity.Operator{Name: "own", RoleSet: identity.RoleOwner, Issuer: "https://i", Subject: "own"}
	owner.ID = add(t, db, tenant, owner)
	plain := identity.Operator{Name: "op", RoleSet: identity.RoleOperator}
	plain.ID = add(t, db, tenant, plain)
	bo := identity.Operator{Name: "bo", RoleSet: identity.RoleOperator, Issuer: "https://i", Subject: "bo"}
	bo.ID = add(t, db, tenant, bo)
	admin := identity.Principal{Tenant: tenant, Role: identity.RoleAdmin, Operator: own.ID}
	with := func(o identity.Operator, change func(*identity.Operator)) identity.Operator {
		change(&o)
		return o
	}

	for name, row := range map[string]struct {
		o    identity.Operator
		want error
	}{
		"itself to owner":             {with(own, func(o *identity.Operator) { o.RoleSet = identity.RoleOwner }), fault.Denied},
		"its own name":                {with(own, func(o *identity.Operator) { o.Name = "x" }), fault.Denied},
		"an owner's login to its own": {with(owner, func(o *identity.Operator) { o.Subject = "adm2" }), fault.Denied},
		"an owner's Slack to its own": {with(owner, func(o *identity.Operator) { o.SlackTeam, o.SlackUser = "T", "U" }), fault.Denied},
		"an owner down":               {with(owner, func(o *identity.Operator) { o.RoleSet = identity.RoleViewer }), fault.Denied},
		"an owner off":                {with(owner, func(o *identity.Operator) { o.Disabled = true }), fault.Denied},
		"an operator to admin":        {with(plain, func(o *identity.Operator) { o.RoleSet = identity.RoleAdmin }), fault.Denied},
		"an operator to viewer":       {with(plain, func(o *identity.Operator) { o.RoleSet = identity.RoleViewer }), nil},
		"an operator's login":         {with(bo, func(o *identity.Operator) { o.Subject = "adm2" }), fault.Denied},
		"nobody":                      {identity.Operator{ID: uuid.New(), Name: "n"}, fault.NotFound},
		"a name with a line":          {with(plain, func(o *identity.Operator) { o.Name = "a\nb" }), fault.Invalid},
		"half of a login":             {with(plain, func(o *identity.Operator) { o.Issuer = "https://i" }), fault.Invalid},
		"another's login":             {with(plain, func(o *identity.Operator) { o.Issuer, o.Subject = "https://i", "own" }), fault.Conflict},
	} {
		err := postgres.InTx(t.Context(), db, postgres.API(tenant), func(tx pgx.Tx) error { return identity.PutOperator(t.Context(), tx, admin, row.o) })
		if !errors.Is(err, row.want) {
			t.Errorf("an administrator changes %s = %v, want %v", name, err, row.want)
		}
	}
}

func TestOperatorBySlack(t *testing.T) {
	t.Parallel()
	db := dbtest.Tx(t)
	tenant, other := tenantOf(t, db), tenantOf(t, db)
	id := add(t, db, tenant, identity.Operator{Name: "Ana", RoleSet: identity.RoleOperator, SlackTeam: "T1", SlackUser: "U1"})
	add(t, db, tenant, identity.Operator{Name: "Off", RoleSet: identity.RoleOperator, SlackTeam: "T1", SlackUser: "U2", Disabled: true})
	add(t, db, tenant, identity.Operator{Name: "None", SlackTeam: "T1", SlackUser: "U3"})

	for _, row := range []struct {
		tenant     envelope.TenantID
		team, user string
		found      bool
	}{
		{tenant, "T1", "U1", true}, {tenant, "T2", "U1", false}, {tenant, "T1", "U2", false}, {tenant, "T1", "U3", false}, {tenant, "", "", false}, {other, "T1", "U1", false},
	} {
		var who identity.Principal
		err := postgres.InTx(t.Context(), db, postgres.API(row.tenant), func(tx pgx.Tx) (err error) {
			who, err = identity.OperatorBySlack(t.Context(), tx, row.tenant, row.team, row.user)
			return err
		})
		if row.found && (err != nil || who.Person() != id || who.Role != identity.RoleOperator || who.Tenant != tenant) {
			t.Errorf("OperatorBySlack(%s, %s) = %+v, %v", row.team, row.user, who, err)
		}
		if !row.found && !errors.Is(err, fault.NotFound) {
			t.Errorf("OperatorBySlack(%s, %s) = %v, want fault.NotFound", row.team, row.user, err)
		}
	}
}

func TestUseIsWrittenLater(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now().Truncate(time.Millisecond)
	tenant := tenantOf(t, db)
	person := add(t, db, tenant, identity.Operator{Name: "Ana", RoleSet: identity.RoleOperator})
	made := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent, Operator: person}, at)
	auth := identity.NewAuthenticator(db)
	for _, after := range []time.Duration{0, time.Second, 2 * time.Second} {
		if _, err := auth.Authenticate(t.Context(), made.Token.Text(), at.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	used := func() (token, seen *time.Time) {
		inTenant(t, db, tenant, func(tx pgx.Tx) error {
			c, err := identity.CredentialByID(t.Context(), tx, tenant, made.Principal.Token)
			if err != nil {
				return err
			}
			o, err := identity.OperatorByID(t.Context(), tx, tenant, person)
			token, seen = c.LastUsedAt, o.LastSeenAt
			return err
		})
		return token, seen
	}
	if token, seen := used(); token != nil || seen != nil {
		t.Errorf("used %v and seen %v before anybody wrote it down", token, seen)
	}

	for range 2 { // the second flush has nothing to write
		if err := auth.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	want := at.Add(2 * time.Second)
	if token, seen := used(); token == nil || !token.Equal(want) || seen == nil || !seen.Equal(want) {
		t.Errorf("used %v and seen %v, want %v", token, seen, want)
	}
}

func TestUnwrittenUseIsKept(t *testing.T) {
	t.Parallel()
	db, at := dbtest.Tx(t), now().Truncate(time.Millisecond)
	tenant := tenantOf(t, db)
	made := issue(t, db, tenant, identity.Grant{Name: "a", Role: identity.RoleAgent}, at)
	flaky := &refusing{Begins: db}
	auth := identity.NewAuthenticator(flaky)
	if _, err := auth.Authenticate(t.Context(), made.Token.Text(), at); err != nil {
		t.Fatal(err)
	}

	flaky.refuse = true
	if err := auth.Flush(t.Context()); err == nil {
		t.Error("Flush without a database succeeds")
	}
	flaky.refuse = false
	if err := auth.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	inTenant(t, db, tenant, func(tx pgx.Tx) error {
		c, err := identity.CredentialByID(t.Context(), tx, tenant, made.Principal.Token)
		if c.LastUsedAt == nil || !c.LastUsedAt.Equal(at) {
			t.Errorf("LastUsedAt = %v, want %v", c.LastUsedAt, at)
		}
		return err
	})
}
