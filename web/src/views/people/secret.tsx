// A secret that the API shows once. It is in the state of one component and nowhere else: no cache of requests, no
// address, no storage.
import { useRef, useState } from 'react'
import { copy } from '../../lib/copy'
import { shown } from '../../lib/text'
import { Button, Dialog } from '../../ui'

interface Sending<T> {
  send: (ask: () => Promise<T>) => void
  busy: boolean
  error: unknown
}

// useUncached sends a request whose answer, or body, has a secret, which a mutation would keep for some minutes.
export function useUncached<T>(onDone: (answer: T) => void): Sending<T> {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const running = useRef(false)
  return {
    busy,
    error,
    send: (ask) => {
      if (running.current) return
      running.current = true
      setBusy(true)
      setError(undefined)
      ask()
        .then(onDone, setError)
        .finally(() => {
          running.current = false
          setBusy(false)
        })
    },
  }
}

// SecretOnce shows the secret of a token until the person has stored it.
export function SecretOnce({ name, secret, onClose }: { name: string; secret: string; onClose: () => void }) {
  return (
    <Dialog
      title={`The token of ${shown(name)}`}
      mustAnswer
      onClose={onClose}
      actions={
        <>
          <Button icon="copy" onClick={() => void copy(secret, 'Token copied')}>
            Copy
          </Button>
          <Button kind="primary" onClick={onClose}>
            I have stored it
          </Button>
        </>
      }
    >
      <div className="stack">
        <p>This is the only time that it is shown. Only its hash is stored.</p>
        <output className="secret mono" aria-label="Token">
          {secret}
        </output>
        <p className="muted">
          A program reads it from <code>COUNTERSIGN_TOKEN</code>.
        </p>
      </div>
    </Dialog>
  )
}
