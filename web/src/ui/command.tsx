import { copy } from '../lib/copy'
import { IconButton } from './button'

// Command names the command line that does the same as a view. A test of internal/cli looks these up.
export function Command({ of }: { of: string }) {
  return (
    <p className="command muted">
      In a terminal: <code>{of}</code>
      <IconButton icon="copy" label={`Copy ${of}`} onClick={() => void copy(of)} />
    </p>
  )
}
