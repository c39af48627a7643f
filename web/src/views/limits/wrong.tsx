// Wrong shows why a draft has no value.
export const Wrong = ({ of }: { of: string | undefined }) =>
  of ? (
    <p className="error" role="alert">
      {of}
    </p>
  ) : null
