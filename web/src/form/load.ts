// The form is loaded when a person begins to edit: reading needs none of it.
import { useEffect, useState } from 'react'
import { toast } from '../ui'

type Loaded = typeof import('./Form')

let loaded: Loaded | undefined

// loadForm loads the form, once.
export async function loadForm(): Promise<Loaded> {
  loaded ??= await import('./Form')
  return loaded
}

// useForm returns the form where it is wanted and loaded.
export function useForm(wanted: boolean): Loaded | undefined {
  const [form, setForm] = useState(loaded)
  useEffect(() => {
    if (!wanted || form) return
    loadForm().then(setForm, () => toast({ text: 'The form could not be loaded. Reload the page to edit.' }))
  }, [wanted, form])
  return form
}
