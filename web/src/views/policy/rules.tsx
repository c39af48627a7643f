import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { Setting } from '../../form/setting'
import { personOf } from '../../lib/actor'
import { useChange } from '../../lib/change'
import { type Problem, request } from '../../lib/client'
import { useMay } from '../../lib/me'
import { all as readAll } from '../../lib/pages'
import { useParams } from '../../lib/params'
import { shown } from '../../lib/text'
import { Button, Chip, Empty, Field, Loading, Mode, ProblemNote, Table, Time, toast } from '../../ui'
import { Export } from '../../ui/export'
import { Removed, type Sections, Simulation, useSimulation } from '../../ui/simulation'
import { idProblem, toolProblem } from './expression'
import { Checked, Expression, useCheck } from './expression-field'
import { Text } from './input'
import { OfTool, useTool } from './of-tool'
import type { Rule } from './types'
import { useUsage } from './usage'
import './rules.css'

const to = '/api/v1/policy/rules'

// Draft has the edited fields of a rule.
type Draft = {
  rule_id: string
  tool: string
  expression: string
  mode: string
  enabled: boolean
  automation_id?: string
  reason?: string
}

const blank: Draft = { rule_id: '', tool: '', expression: '', mode: 'require_approval', enabled: true }

// draftOf returns the edited fields of a rule, without empty texts.
function draftOf({ rule_id, tool, expression, mode, enabled, automation_id, reason }: Draft): Draft {
  return {
    rule_id,
    tool,
    expression,
    mode,
    enabled,
    ...(automation_id && { automation_id }),
    ...(reason && { reason }),
  }
}

const readRules = (signal?: AbortSignal) => readAll<Rule>(to, signal)

const versionOf = (rule: Rule | undefined) => ({ value: rule ? draftOf(rule) : null, etag: rule?.etag ?? '' })

// Rules lists the rules about arguments. The open one is in the address: rule=ID, or rule= for a new one.
export function Rules() {
  const [params, change, at] = useParams()
  const open = params.get('rule')
  const may = useMay()
  const usage = useUsage('rules')
  const rules = useQuery<Rule[], Problem>({
    queryKey: ['config', 'rules'],
    queryFn: ({ signal }) => readRules(signal),
  })
  const rows = useTool(rules.data ?? [])
  if (rules.isPending) return <Loading what="rules" />
  if (rules.isError) return <ProblemNote error={rules.error} onRetry={() => void rules.refetch()} />
  const all = rules.data
  const found = all.find((rule) => rule.rule_id === open)
  return (
    <div className="stack">
      <div className="row">
        <p className="grow muted">
          A rule is an expression about a call. If it is true, or fails, the rule asks a person or denies. It never
          allows.
        </p>
        <Export name="rules" to={to} />
        <Button whyNot={may('putRule')} onClick={() => change({ rule: '' })}>
          New rule
        </Button>
      </div>
      <OfTool rows={all} />
      {all.length === 0 ? (
        <Empty title="No rules">
          <p>
            <code>{`countersign policy rule set ID --tool mail:send --when 'args.amount > 100' --mode deny`}</code>{' '}
            makes one.
          </p>
        </Empty>
      ) : (
        rows.length > 0 && (
          <Table
            caption="Rules"
            rows={rows}
            keyOf={(rule) => rule.rule_id}
            columns={[
              {
                name: 'Rule',
                cell: (rule) => (
                  <span className="row">
                    <Link href={at({ rule: rule.rule_id })}>{shown(rule.rule_id)}</Link>
                    {!rule.enabled && (
                      <Chip tone="calm" icon="pause">
                        off
                      </Chip>
                    )}
                  </span>
                ),
              },
              { name: 'Tools', cell: (rule) => <bdi>{shown(rule.tool)}</bdi> },
              {
                name: 'When true',
                cell: (rule) => <Mode mode={rule.mode} inherited={!rule.enabled} />,
              },
              {
                name: 'Expression',
                cell: (rule) => (
                  <code className="cut-code" title={shown(rule.expression)}>
                    {shown(rule.expression)}
                  </code>
                ),
                hideNarrow: true,
              },
              { name: 'Reason', cell: (rule) => shown(rule.reason ?? ''), hideNarrow: true },
              { name: usage.name, cell: (rule) => usage.cell(rule.rule_id), hideNarrow: true },
              { name: 'Version', cell: (rule) => rule.version ?? '–', number: true, hideNarrow: true },
              {
                name: 'Changed',
                cell: (rule) => (
                  <>
                    <bdi>{shown(personOf(rule.updated_by))}</bdi>, <Time at={rule.updated_at} />
                  </>
                ),
                hideNarrow: true,
              },
            ]}
          />
        )
      )}
      {open !== null && (open === '' || found) && (
        <Editor key={open} rule={found} all={all} onClose={() => change({ rule: undefined })} />
      )}
      {open && !found && <p role="status">The rule {shown(open)} does not exist.</p>}
    </div>
  )
}

const same = (a: Draft, b: Draft) => JSON.stringify(a) === JSON.stringify(b)

function Editor({ rule, all, onClose }: { rule: Rule | undefined; all: readonly Rule[]; onClose: () => void }) {
  const may = useMay()
  const [base] = useState(() => versionOf(rule))
  const [draft, setDraft] = useState(base.value ?? blank)
  const set = (change: Partial<Draft>) => setDraft(draftOf({ ...draft, ...change }))
  const check = useCheck(draft.tool, draft.automation_id, draft.expression)
  const taken = all.map((one) => one.rule_id)
  const others = all.filter((one) => one.rule_id !== rule?.rule_id).map(draftOf)
  const trial = useSimulation(
    check.valid && !same(draft, base.value ?? blank)
      ? ({ rules: [...others, { ...draft, rule_id: rule ? draft.rule_id : 'the-new-rule' }] } as Sections)
      : undefined,
    { tool: draft.tool },
  )
  const wrong =
    (rule ? undefined : idProblem(draft.rule_id, taken)) ??
    toolProblem(draft.tool) ??
    (draft.expression.trim() === '' ? 'Enter an expression.' : undefined) ??
    (check.errors.length > 0 ? 'Mend the expression.' : undefined)
  const of = `${to}/${encodeURIComponent(draft.rule_id)}`
  const change = useChange<Draft>({
    base,
    read: async () => versionOf((await readRules()).find((one) => one.rule_id === draft.rule_id)),
    write: (value, ifMatch) =>
      value === null
        ? request('DELETE', of, { ifMatch })
        : request('PUT', of, { body: { ...value, rule_id: undefined }, ifMatch }),
    onSaved: (value) => {
      toast({ text: `${value === null ? 'Removed' : 'Saved'} rule ${shown(draft.rule_id)}.` })
      onClose()
    },
  })
  return (
    <Setting
      title={rule ? `Rule ${shown(rule.rule_id)}` : 'New rule'}
      change={change}
      value={draft}
      whyNot={may('putRule') ?? wrong ?? trial.whyNot}
      onTheirs={(theirs) => (theirs ? setDraft(theirs) : onClose())}
      remove={{
        word: 'Remove',
        name: `rule ${shown(draft.rule_id)}`,
        text: (
          <>
            <p>Its calls are decided without it from then on. Actions that wait because of it keep waiting.</p>
            <Removed of={{ rules: others } as Sections} />
          </>
        ),
        whyNot: may('deleteRule'),
      }}
      command={`countersign policy rule set ${rule ? shown(rule.rule_id) : 'ID'} --tool KEY --when @FILE --mode MODE`}
      onClose={onClose}
    >
      {!rule && (
        <Field label="Id" error={draft.rule_id && idProblem(draft.rule_id, taken)}>
          {(wiring) => <Text {...wiring} value={draft.rule_id} most={100} onText={(rule_id) => set({ rule_id })} />}
        </Field>
      )}
      <div className="fields">
        <Field label="Tools" hint="mail:send, mail:*, *:send or *" error={draft.tool && toolProblem(draft.tool)}>
          {(wiring) => <Text {...wiring} value={draft.tool} most={301} onText={(tool) => set({ tool })} />}
        </Field>
        <Field label="Automation" hint="Empty for all.">
          {(wiring) => (
            <Text
              {...wiring}
              value={draft.automation_id ?? ''}
              most={200}
              onText={(automation_id) => set({ automation_id })}
            />
          )}
        </Field>
      </div>
      <Expression value={draft.expression} check={check} onChange={(expression) => set({ expression })} />
      <Checked check={check} />
      <div className="fields">
        <Field label="When it is true">
          {(wiring) => (
            <select {...wiring} value={draft.mode} onChange={(e) => set({ mode: e.target.value })}>
              <option value="require_approval">ask a person</option>
              <option value="deny">deny</option>
              {!['require_approval', 'deny'].includes(draft.mode) && (
                <option value={draft.mode}>{shown(draft.mode)}</option>
              )}
            </select>
          )}
        </Field>
        <Field label="Reason" hint="Shown with every action that the rule applies to.">
          {(wiring) => <Text {...wiring} value={draft.reason ?? ''} most={200} onText={(reason) => set({ reason })} />}
        </Field>
      </div>
      <label className="row tick">
        <input type="checkbox" checked={draft.enabled} onChange={(e) => set({ enabled: e.target.checked })} />
        The rule is on
      </label>
      <Simulation of={trial} />
    </Setting>
  )
}
