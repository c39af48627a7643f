import { diffWordsWithSpace } from 'diff'
import { shown } from '../lib/text'

// Diff shows what changed between two texts, word by word, with marks beside the colours.
export function Diff({ before, after }: { before: string; after: string }) {
  return (
    <span className="diff">
      {diffWordsWithSpace(before, after).map((part, at) => {
        const text = shown(part.value, 'lines')
        if (part.added) return <ins key={at}><span className="unseen">added: </span>{text}</ins>
        if (part.removed) return <del key={at}><span className="unseen">removed: </span>{text}</del>
        return <span key={at}>{text}</span>
      })}
    </span>
  )
}
