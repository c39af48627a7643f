// The field for the expression of a rule, which is checked while it is typed and tried on past actions.
import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { type Problem, request, type Schemas } from '../../lib/client'
import { shown } from '../../lib/text'
import { Button, Field, ProblemNote, Time } from '../../ui'
import { type Mistake, marked, rangeOf, toolProblem } from './expression'

export interface Check {
  query: UseQueryResult<Schemas['RuleChecked'], Problem>
  errors: Schemas['RuleChecked']['errors']
  // valid reports whether the expression as it is now was checked, without a mistake.
  valid: boolean
}

// settling is how long an expression has to stay the same before it is checked, in ms.
const settling = 300

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), settling)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}

// useCheck checks an expression after a pause in typing. What it returns meanwhile is about the text before.
export function useCheck(tool: string, automation: string | undefined, expression: string): Check {
  const body = { tool, expression, ...(automation && { automation_id: automation }) }
  const text = JSON.stringify(body)
  const settled = useSettled(text)
  const query = useQuery<Schemas['RuleChecked'], Problem>({
    queryKey: ['rule-check', settled],
    queryFn: ({ signal }) =>
      request<Schemas['RuleChecked']>('POST', '/api/v1/policy/check', { body: JSON.parse(settled), signal }).then(
        (answer) => answer.body,
      ),
    enabled: toolProblem((JSON.parse(settled) as typeof body).tool) === undefined,
    placeholderData: (before) => before,
    retry: false,
    gcTime: 0,
    staleTime: Infinity,
  })
  const errors = expression.trim() === '' ? [] : (query.data?.errors ?? [])
  return { query, errors, valid: text === settled && !query.isPlaceholderData && query.data?.past !== undefined }
}

export function Expression({
  value,
  check,
  onChange,
}: {
  value: string
  check: Check
  onChange: (text: string) => void
}) {
  const field = useRef<HTMLTextAreaElement>(null)
  const { errors } = check
  const { arguments: args = [], variables = [] } = check.query.data ?? {}
  const insert = (name: string) => {
    const it = field.current
    if (!it) return
    it.setRangeText(name, it.selectionStart, it.selectionEnd, 'end')
    it.focus()
    onChange(it.value)
  }
  const show = (mistake: Mistake) => {
    const range = rangeOf(value, mistake)
    field.current?.focus()
    if (range) field.current?.setSelectionRange(...range)
  }
  const chips = (names: readonly { name: string; type: string }[]) => (
    <ul className="row names">
      {names.map(({ name, type }) => (
        <li key={name}>
          <button type="button" className="chip" title={shown(type)} onClick={() => insert(name)}>
            <code>{shown(name)}</code>
          </button>
        </li>
      ))}
    </ul>
  )
  return (
    <>
      <Field
        label="Expression"
        hint={
          <>
            CEL, such as <code>args.amount &gt; 100 &amp;&amp; employee.trust != "high"</code>
          </>
        }
      >
        {(wiring) => (
          <textarea
            {...wiring}
            ref={field}
            className="mono expression"
            value={value}
            rows={4}
            maxLength={4096}
            spellCheck={false}
            autoComplete="off"
            aria-invalid={errors.length > 0 || undefined}
            onChange={(e) => onChange(e.target.value)}
          />
        )}
      </Field>
      {errors.length > 0 && (
        <div role="alert" aria-label="Mistakes">
          <ul className="stack">
            {errors.map((mistake) => (
              <li key={`${mistake.line} ${mistake.column} ${mistake.message}`}>
                <Marked text={value} mistake={mistake} onShow={() => show(mistake)} />
              </li>
            ))}
          </ul>
        </div>
      )}
      {args.length > 0 && (
        <section aria-label="Arguments of the tool">
          <h3>Arguments of the tool</h3>
          {chips(args)}
        </section>
      )}
      {variables.length > 0 && (
        <details>
          <summary>Other names</summary>
          {chips(variables)}
        </details>
      )}
    </>
  )
}

function Marked({ text, mistake, onShow }: { text: string; mistake: Mistake; onShow: () => void }) {
  const part = marked(text, mistake)
  const place = part && `Line ${mistake.line}, column ${mistake.column}`
  return (
    <>
      <p>
        {place && (
          <Button kind="quiet" onClick={onShow}>
            {place}
          </Button>
        )}{' '}
        {shown(mistake.message)}
      </p>
      {part && (
        <code className="marked">
          {shown(part.before)}
          <mark>{shown(part.wrong)}</mark>
          {shown(part.after)}
        </code>
      )}
    </>
  )
}

const number = (count: number) => count.toLocaleString('en')

// mostLinks is how many actions of a result are linked.
const mostLinks = 5

// Checked shows for how many past actions the expression is true, false, or fails.
export function Checked({ check: { query } }: { check: Check }) {
  if (query.isError) return <ProblemNote error={query.error} what="Not checked" onRetry={() => void query.refetch()} />
  const past = query.data?.past
  if (!past) return null
  const results = [
    ['True', past.matched],
    ['False', past.unmatched],
    ['Failed, which counts as true', past.failed],
  ] as const
  return (
    <section className="stack" aria-label="The past">
      <p role="status">
        True for {number(past.matched.count)} of {number(past.compared)} past calls, false for{' '}
        {number(past.unmatched.count)}, failed for {number(past.failed.count)},{' '}
        {past.complete ? (
          <>
            since <Time at={past.since} as="clock" />
          </>
        ) : (
          <>among the last {number(past.examined)} actions</>
        )}
        .
      </p>
      {past.reasons.map((reason) => (
        <p key={reason} className="muted">
          Failed: {shown(reason)}.
        </p>
      ))}
      <dl className="terms">
        {results
          .filter(([, { actions }]) => actions.length > 0)
          .map(([name, { actions }]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd className="row">
                {actions.slice(0, mostLinks).map((id) => (
                  <Link key={id} href={`/actions/${id}`} target="_blank" className="mono">
                    …{id.slice(-8)}
                  </Link>
                ))}
              </dd>
            </div>
          ))}
      </dl>
    </section>
  )
}
