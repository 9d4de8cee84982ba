"""What is filled into the fields of a form."""

from collections.abc import Iterator
from ctypes import POINTER, c_ushort, c_void_p, cast, create_string_buffer
from typing import Any

from ..values import WorkLimit

MAX_FIELDS = 2_000  # of a page
MAX_BYTES = 200_000
FIELD_STEPS = 500


def field_values(page: Any, formenv: Any, work: WorkLimit) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each field of a page that is filled in."""
    from pypdfium2 import raw

    count = min(raw.FPDFPage_GetAnnotCount(page), MAX_FIELDS)
    for number in range(count):
        work.spend(FIELD_STEPS)
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        try:
            if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
                continue
            kind = raw.FPDFAnnot_GetFormFieldType(formenv, annotation)
            label = _text(raw.FPDFAnnot_GetFormFieldAlternateName, formenv, annotation)
            label = label or _text(raw.FPDFAnnot_GetFormFieldName, formenv, annotation)
            if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
                is_checked = raw.FPDFAnnot_IsChecked(formenv, annotation)
                export = _text(raw.FPDFAnnot_GetFormFieldExportValue, formenv, annotation)
                value = (export or "Yes") if is_checked else ""
            else:
                value = _text(raw.FPDFAnnot_GetFormFieldValue, formenv, annotation)
            if value.strip():
                yield label, value
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _text(read: Any, formenv: Any, annotation: Any) -> str:
    size = min(read(formenv, annotation, None, 0), MAX_BYTES)
    if size <= 2:
        return ""
    buffer = create_string_buffer(size)
    read(
        formenv,
        annotation,
        cast(c_void_p(cast(buffer, c_void_p).value), POINTER(c_ushort)),
        size,
    )
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")
