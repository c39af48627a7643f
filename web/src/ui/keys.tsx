import { written } from '../lib/keys'

// Keys shows a key of the command table. Readers hear it by the command's name instead.
export function Keys({ of }: { of: string }) {
  return (
    <span className="keys" aria-hidden="true">
      {written(of).map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </span>
  )
}
