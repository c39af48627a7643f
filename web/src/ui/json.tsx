import { type Json, stringify } from '../lib/json'
import { shown } from '../lib/text'

// JsonText shows a value as JSON, digit for digit.
export function JsonText({ value, label }: { value: unknown; label: string }) {
  return (
    <pre className="json" data-value="" tabIndex={0} aria-label={label} role="region">
      {shown(stringify(value as Json, 2) ?? '', 'lines')}
    </pre>
  )
}
