// The dialog in which a person gives an answer that stays on record, with a note where it takes one.
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { Problem } from '../lib/client'
import { useCommands } from '../lib/keys'
import { Button } from './button'
import { Dialog } from './dialog'
import { Field } from './field'
import { ProblemNote } from './problem'

export interface AskProps<T> {
  title: string
  text: string
  // label is what the button says.
  label: string
  note: 'no' | 'may' | 'must'
  // hint says what the note is about.
  hint: string
  send: (note: string) => Promise<T>
  onDone: (answer: T) => void
  onClose: () => void
}

export function Ask<T>({ title, text, label, note: noted, hint, send, onDone, onClose }: AskProps<T>) {
  const [note, setNote] = useState('')
  const sending = useMutation<T, Problem>({
    mutationFn: () => send(note.trim()),
    onSuccess: (answer) => {
      onClose()
      onDone(answer)
    },
  })
  const whyNot = noted === 'must' && note.trim() === '' ? 'Enter a note, for the audit log.' : undefined
  const submit = () => !whyNot && !sending.isPending && sending.mutate()
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Not now</Button>
          <Button kind="primary" command="send" whyNot={whyNot} busy={sending.isPending} onClick={submit}>
            {label}
          </Button>
        </>
      }
    >
      <div className="stack">
        <p>{text}</p>
        <Sending run={submit} />
        {noted !== 'no' && (
          <Field label="Note" hint={noted === 'must' ? hint : `${hint} Optional.`}>
            {(wiring) => (
              <textarea
                {...wiring}
                value={note}
                maxLength={500}
                required={noted === 'must'}
                onChange={(e) => setNote(e.target.value)}
              />
            )}
          </Field>
        )}
        {sending.error && <ProblemNote error={sending.error} />}
      </div>
    </Dialog>
  )
}

// Sending binds the key inside a dialog, where the keys of the page rest.
export function Sending({ run, whyNot }: { run: () => void; whyNot?: string | undefined }) {
  useCommands([{ id: 'send', run, whyNot }])
  return null
}
