package doctor

import (
	"context"
	_ "embed" // for the grants
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/countersign-dev/countersign/internal/postgres"
)

// grantsText lists the privileges in a database that was just migrated.
//
//go:embed grants.txt
var grantsText string

// ownRoles returns the roles that the migrations create.
func ownRoles() []string {
	return []string{"countersign_api", "countersign_owner", "countersign_triage", "countersign_worker"}
}

// versions are the current version of the schema, and that of this binary.
type versions struct{ got, want version }

func readVersions(ctx context.Context, d database) (v versions, err error) {
	if v.got, err = readVersion(ctx, d); err != nil {
		return v, err
	}
	if v.want.Schema, err = postgres.LatestSchema(); err != nil {
		return v, err
	}
	river, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Schema: postgres.RiverSchema})
	if err != nil {
		return v, fmt.Errorf("river's migrations: %w", err)
	}
	for _, m := range river.AllVersions() {
		v.want.River = max(v.want.River, int64(m.Version))
	}
	return v, nil
}

func describeVersions(v versions) string {
	return fmt.Sprintf("the schema is at version %d, River's tables at %d", v.got.Schema, v.got.River)
}

func versionFindings(v versions) (wrong []Finding) {
	for _, of := range []struct {
		what      string
		got, want int64
	}{{"the schema", v.got.Schema, v.want.Schema}, {"River's schema", v.got.River, v.want.River}} {
		switch {
		case of.got == 0:
			wrong = append(wrong, fail(of.what+" does not exist", migrateFirst))
		case of.got < of.want:
			wrong = append(wrong, fail(fmt.Sprintf("%s is at version %d, and this binary wants %d", of.what, of.got, of.want), migrateFirst))
		case of.got > of.want:
			wrong = append(wrong, warn(fmt.Sprintf("%s is at version %d, and this binary knows %d", of.what, of.got, of.want),
				"Use a binary of the version that migrated it."))
		}
	}
	return wrong
}

// rolesFindings returns the findings about Countersign's roles, including
// missing ones.
func rolesFindings(roles []role) (wrong []Finding) {
	for _, name := range ownRoles() {
		i := slices.IndexFunc(roles, func(r role) bool { return r.Name == name })
		if i < 0 {
			wrong = append(wrong, fail("role "+name+" does not exist", migrateFirst))
			continue
		}
		wrong = append(wrong, roleFindings(roles[i])...)
	}
	return wrong
}

func roleFindings(r role) (wrong []Finding) {
	for _, may := range []struct {
		is   bool
		what string
		not  string
	}{
		{r.Login, "log in", "NOLOGIN"}, {r.Super, "do everything, as a superuser", "NOSUPERUSER"},
		{r.ByPass, "see past row security", "NOBYPASSRLS"}, {r.CreateRole, "make roles", "NOCREATEROLE"}, {r.CreateDB, "make databases", "NOCREATEDB"},
	} {
		if may.is {
			wrong = append(wrong, fail(fmt.Sprintf("the role %s can %s", r.Name, may.what), fmt.Sprintf("ALTER ROLE %s %s; log in as a user that was granted it.", r.Name, may.not)))
		}
	}
	for _, other := range r.MemberOf {
		wrong = append(wrong, fail(fmt.Sprintf("the role %s has all that %s has", r.Name, other), fmt.Sprintf("REVOKE %s FROM %s;", other, r.Name)))
	}
	return wrong
}

func exposureFindings(x postgres.Exposure) []Finding { return []Finding{fail(x.Problem, x.Fix)} }

func rowSecurityFindings(t guarded) (wrong []Finding) {
	force := fmt.Sprintf("ALTER TABLE %s.%s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;", postgres.Schema, t.Name)
	switch {
	case !t.Enabled:
		wrong = append(wrong, fail("tenants see each other's rows of "+t.Name+": row security is off", force))
	case !t.Forced:
		wrong = append(wrong, fail("row security of "+t.Name+" does not hold for its owner", force))
	}
	if t.Owner != "countersign_owner" {
		wrong = append(wrong, fail(fmt.Sprintf("%s belongs to %s", t.Name, t.Owner), fmt.Sprintf("ALTER TABLE %s.%s OWNER TO countersign_owner;", postgres.Schema, t.Name)))
	}
	for _, name := range t.Open {
		wrong = append(wrong, fail(fmt.Sprintf("the policy %s lets tenants see every row of %s", name, t.Name), fmt.Sprintf("DROP POLICY %s ON %s.%s; then find out who created it.", name, postgres.Schema, t.Name)))
	}
	// Workers do not use the tables of triage.
	if !slices.Contains(t.For, "countersign_worker") && !slices.Contains(t.For, "countersign_triage") {
		wrong = append(wrong, fail("no policy lets the workers see "+t.Name, migrateFirst+" If the versions are right already, restore the policy from the migrations."))
	}
	return wrong
}

// inSchema is the prefix of a fix with unqualified table names.
const inSchema = "SET search_path = " + postgres.Schema + ", " + postgres.RiverSchema + "; "

// line returns a grant in the form of grants.txt.
func (g grant) line() string { return g.Grantee + " " + g.What }

// grantFindings compares the grants with those of grants.txt.
func grantFindings(got []grant) (wrong []Finding) {
	missing := strings.Split(strings.TrimSpace(grantsText), "\n")
	for _, g := range got {
		if i := slices.Index(missing, g.line()); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
			continue
		}
		revoke := fmt.Sprintf("%sREVOKE %s FROM %s;", inSchema, g.What, g.Grantee)
		if g.Grantee == "PUBLIC" || slices.Contains(ownRoles(), g.Grantee) {
			wrong = append(wrong, fail(fmt.Sprintf("%s has privileges that no migration granted: %s", g.Grantee, g.What), revoke))
		} else {
			wrong = append(wrong, warn(fmt.Sprintf("%s, which is not a role of Countersign, has %s", g.Grantee, g.What), revoke+" A separate reader is better granted pg_monitor."))
		}
	}
	for _, line := range missing {
		grantee, what, _ := strings.Cut(line, " ")
		wrong = append(wrong, fail(fmt.Sprintf("%s lacks %s", grantee, what), fmt.Sprintf("%sGRANT %s TO %s;", inSchema, what, grantee)))
	}
	return wrong
}

func describePartitions(got partitions) string {
	return fmt.Sprintf("%d of tool_executions, this month's and the next one's among them", len(got.Months))
}

func partitionFindings(got partitions) (wrong []Finding) {
	const month, makeThem = "200601", "Let a worker run: it makes them once an hour. Or call, as a superuser: SELECT countersign_data.ensure_partitions(2);"
	first := time.Date(got.Today.Year(), got.Today.Month(), 1, 0, 0, 0, 0, time.UTC)
	this, next := first.Format(month), first.AddDate(0, 1, 0)
	if !slices.Contains(got.Months, this) {
		wrong = append(wrong, fail("tool_executions has no partition for this month, so no action can end", makeThem))
	}
	if !slices.Contains(got.Months, next.Format(month)) {
		wrong = append(wrong, grade(next.Sub(got.Today) < 3*24*time.Hour, "tool_executions has no partition for the next month", makeThem))
	}
	for _, name := range got.Months {
		at, err := time.Parse(month, name)
		if err != nil {
			continue // the name is made by to_char
		}
		past := got.Today.Sub(at.AddDate(0, 1, 0))
		switch {
		case past > 40*24*time.Hour && slices.Contains(got.Empty, name):
			wrong = append(wrong, warn("the partition of "+name+" is empty and past its retention",
				"Check that a worker runs, and its log for the job countersign_retention: it drops such partitions once a day."))
		case got.KeptDays >= 0 && past > time.Duration(got.KeptDays+31)*24*time.Hour:
			wrong = append(wrong, warn(fmt.Sprintf("the partition of %s is a month older than the %d days that ended actions are kept", name, got.KeptDays),
				"Check that a worker runs, and its log for the job countersign_retention. Actions that have not ended, and dead letters, are never deleted."))
		}
	}
	return wrong
}
