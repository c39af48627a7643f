import type { Schemas } from '../../lib/client'
import { shown } from '../../lib/text'
import { Chip, Shown } from '../../ui'

// Trace shows a decision of policy, with the answer of every layer.
export function Trace({ policy }: { policy: Pick<Schemas['Action']['policy'], 'mode' | 'source' | 'trace'> }) {
  return (
    <section className="panel stack" aria-labelledby="policy">
      <div className="row">
        <h2 id="policy">Policy decision</h2>
        <Chip tone={policy.mode === 'deny' ? 'bad' : policy.mode === 'allow' ? 'good' : 'person'}>
          {policy.mode.replaceAll('_', ' ')}
        </Chip>
        <span className="muted">
          <Shown text={policy.source} />
        </span>
      </div>
      <details className="open">
        <summary>All layers ({policy.trace.length})</summary>
        <ol className="trace">
          {policy.trace.map((step, i) => (
            <li key={i} className={step.said ? '' : 'muted'}>
              <span>{shown(step.layer.replaceAll('_', ' '))}</span>
              <span>{step.said ? shown(step.said.replaceAll('_', ' ')) : 'no opinion'}</span>
              <span className="mono">{shown(step.tool ?? '')}</span>
              <span>
                <Shown
                  text={[step.detail, step.rule && `rule ${step.rule}`, step.version && `version ${step.version}`]
                    .filter(Boolean)
                    .join(', ')}
                />
              </span>
            </li>
          ))}
        </ol>
      </details>
    </section>
  )
}
