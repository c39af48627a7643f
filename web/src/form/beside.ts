// The reading of an exact value, in the zone that a person chose.
import type { Json } from '../lib/json'
import { usePreferences } from '../lib/preferences'
import { useNow } from '../lib/time'
import type { Field } from './plan'
import { readable } from './readable'

// useReadable returns how a person would write the value of a field, or undefined.
export function useReadable(field: Field, beside: Json | undefined): string | undefined {
  const { zone } = usePreferences()
  return readable(field, beside, zone, useNow(60_000))
}
