import { hides, shown } from '../lib/text'
import { Chip } from './chip'

// Shown is text from outside: what does not show is written out, and said to be there.
export function Shown({ text, lines }: { text: string; lines?: boolean }) {
  const how = lines ? 'lines' : 'one line'
  return (
    <>
      <bdi className={lines ? 'lines' : ''}>{shown(text, how)}</bdi>
      {hides(text, how) && (
        <Chip tone="drift" icon="triangle">
          has invisible characters
        </Chip>
      )}
    </>
  )
}
