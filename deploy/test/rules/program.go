package rules

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// An environment is the set of variables of a container's program.
type environment struct {
	values map[string]string
	// secrets are the names of the Secrets that variables come from.
	secrets map[string]string
	// missing are the ConfigMaps that the set does not have.
	missing []string
}

func environmentOf(t rendered.Typed, c corev1.Container) environment {
	env := environment{values: map[string]string{}, secrets: map[string]string{}}
	for _, from := range c.EnvFrom {
		switch {
		case from.SecretRef != nil:
			env.secrets["every variable of "+from.SecretRef.Name] = from.SecretRef.Name
		case from.ConfigMapRef != nil:
			at := slices.IndexFunc(t.ConfigMaps, func(m *corev1.ConfigMap) bool { return m.Name == from.ConfigMapRef.Name })
			if at < 0 {
				env.missing = append(env.missing, from.ConfigMapRef.Name)
				continue
			}
			for name, value := range t.ConfigMaps[at].Data {
				env.values[from.Prefix+name] = value
			}
		}
	}
	for _, v := range c.Env {
		if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			env.secrets[v.Name] = v.ValueFrom.SecretKeyRef.Name
		} else if v.ValueFrom == nil {
			env.values[v.Name] = v.Value
		}
	}
	return env
}

// number returns a variable as a number, or another number if it is not set.
func (e environment) number(name string, standard int) int {
	if n, err := strconv.Atoi(e.values[name]); err == nil {
		return n
	}
	return standard
}

// duration returns a variable as a duration, or another if it is not set.
func (e environment) duration(name string, standard time.Duration) time.Duration {
	if d, err := time.ParseDuration(e.values[name]); err == nil {
		return d
	}
	return standard
}

// Program returns the name of Countersign's program that a container runs, as
// in "api" or "countersign migrate", and empty for programs of others.
func Program(c corev1.Container) string {
	if image, _, _ := strings.Cut(path.Base(c.Image), ":"); !strings.HasPrefix(image, "countersign") || len(c.Command) == 0 {
		return ""
	}
	name := path.Base(c.Command[0])
	if name != "countersign" {
		return name
	}
	for _, word := range slices.Concat(c.Command[1:], c.Args) {
		if strings.HasPrefix(word, "-") {
			break
		}
		name += " " + word
	}
	return name
}

// ours calls visit for each container that runs a program of Countersign.
func ours(t rendered.Typed, visit func(w rendered.Workload, c corev1.Container, program string)) {
	for _, w := range t.Workloads() {
		for _, c := range w.Containers() {
			if program := Program(c); program != "" {
				visit(w, c, program)
			}
		}
	}
}

// connections returns the number of database connections of a process of a
// program, for a pool of the given size, or of its default if that is 0.
func connections(program string, pool int) int {
	standard := map[string]int{"api": 10, "worker": 20, "triage": 10, "countersign triage run": 10, "countersign migrate": 4}
	switch {
	case pool == 0 && standard[program] > 0:
		pool = standard[program]
	case pool == 0:
		pool = 1
	}
	if program == "worker" {
		pool += 2 // River's LISTEN, and that for proposals made in SQL
	}
	return pool
}

// An Environment is the set of variables that a manifest sets for one
// container of Countersign.
type Environment struct {
	// Container is KIND/NAME/CONTAINER.
	Container, Program string
	Values             map[string]string
	// Secrets are the variables that come from Secrets.
	Secrets []string
}

// Environments returns the environments of all of Countersign's containers.
func Environments(t rendered.Typed) []Environment {
	var all []Environment
	ours(t, func(w rendered.Workload, c corev1.Container, program string) {
		env := environmentOf(t, c)
		all = append(all, Environment{
			Container: w.String() + "/" + c.Name, Program: program, Values: env.values,
			Secrets: slices.Sorted(maps.Keys(env.secrets)),
		})
	})
	return all
}
