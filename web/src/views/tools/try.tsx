import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { type Problem, post, type Schemas } from '../../lib/client'
import { type Json, stringify } from '../../lib/json'
import { useCommands } from '../../lib/keys'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Command, Field, ProblemNote } from '../../ui'
import { Trace } from '../action/trace'
import { argumentsOf, sample } from './sample'

type Explanation = Schemas['Explanation']

// Try asks policy about a call, of which nothing is stored or sent.
export function Try({ tool }: { tool: Schemas['Tool'] }) {
  const may = useMay()
  const [text, setText] = useState(() => stringify(sample(tool.input_schema as Json), 2))
  const [automation, setAutomation] = useState('')
  const read = argumentsOf(text)
  const problem = 'problem' in read ? read.problem : undefined
  const ask = useMutation<Explanation, Problem>({
    mutationFn: () =>
      post<Explanation>('/api/v1/policy/explain', {
        tool: tool.tool,
        ...('args' in read && { args: read.args }),
        ...(automation.trim() && { automation_id: automation.trim() }),
      }),
  })
  const whyNot = may('explainPolicy') ?? (problem && 'The arguments are not readable as JSON.')
  const run = () => !whyNot && !ask.isPending && ask.mutate()
  useCommands([{ id: 'send', run, whyNot }])
  return (
    <section className="panel stack" aria-labelledby="try">
      <h2 id="try">Try a call</h2>
      <p className="muted">
        Policy decides about these arguments. Nothing is stored, and nothing is sent to the source.
      </p>
      <Field label="Arguments" error={problem && shown(problem)}>
        {(wiring) => (
          <textarea
            {...wiring}
            className="mono try-args"
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </Field>
      <Field label="Automation" hint="Under which it is proposed. Optional.">
        {(wiring) => (
          <input {...wiring} value={automation} maxLength={200} onChange={(e) => setAutomation(e.target.value)} />
        )}
      </Field>
      <div className="row">
        <Button kind="primary" command="send" whyNot={whyNot} busy={ask.isPending} onClick={run}>
          Ask policy
        </Button>
      </div>
      {ask.error && <ProblemNote error={ask.error} what="Policy did not answer" />}
      {ask.data && <Trace policy={{ ...ask.data, source: ask.data.mode_source }} />}
      <Command of="countersign policy explain TOOL ARGS" />
    </section>
  )
}
