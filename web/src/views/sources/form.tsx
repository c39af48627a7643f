import { PlainSheet } from '../../form/plain-sheet'
import { request } from '../../lib/client'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { toast } from '../../ui'
import { bodyOf, checked, every, fieldsOf, formOf, fresh, type Source } from './health'
import { readSources, sourceAPI } from './read'

// Form sets a source up, or changes it.
export function Form({
  source,
  taken,
  onClose,
  onSaved,
}: {
  source?: Source
  // taken are the ids that exist.
  taken?: readonly string[]
  onClose: () => void
  onSaved?: (id: string) => void
}) {
  const may = useMay()
  const stored = source !== undefined
  const base = stored ? { value: formOf(source), etag: source.etag } : { value: null, etag: '' }
  return (
    <PlainSheet
      title={stored ? `Change ${shown(source.source_id)}` : 'Set a source up'}
      fields={every}
      fieldsOf={(draft) => fieldsOf(stored, draft)}
      check={(form) => ({
        ...checked(form),
        ...(taken?.includes(String(form.source_id)) && { '/source_id': 'This id exists. Change that source instead.' }),
      })}
      base={base}
      blank={fresh}
      read={async (form) => {
        const id = stored ? source.source_id : form?.source_id
        const now = (await readSources()).find((one) => one.source_id === id)
        return now ? { value: formOf(now), etag: now.etag } : { value: null, etag: '' }
      }}
      write={(form, ifMatch) =>
        request('PUT', sourceAPI(stored ? source.source_id : String(form!.source_id)), { body: bodyOf(form!), ifMatch })
      }
      whyNot={may('putSource')}
      onSaved={(form) => {
        const id = stored ? source.source_id : String(form!.source_id)
        toast({ text: `${shown(id)} is saved. Its tools are listed within seconds.` })
        onClose()
        onSaved?.(id)
      }}
      onClose={onClose}
    />
  )
}
